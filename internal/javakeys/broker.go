// Package javakeys knows which configuration keys of RocketMQ have no effect here, and why. A key is either bound to a
// field of some Config or listed here: a test of cmd/quorate holds that for every key the original product prints.
package javakeys

import "strings"

// group is a set of keys that share one reason.
type group struct{ reason, keys string }

// Reasons that are given more than once.
const (
	threads   = "requests run in goroutines; what is at work at once is bounded per request class, sized to this machine"
	noMmap    = "segments are read and written by position, nothing is mapped"
	netty     = "a setting of the Netty library, which is not used"
	popLater  = "pop consumption is not built yet"
	liteLater = "lite topics are not built yet"
	rocksdb   = "there is no RocksDB here: tables are RocketMQ's JSON files"
	authLater = "authentication and authorization are not built yet"
	timerKey  = "timed messages beyond the 18 delay levels are not built yet"
	haLater   = "this part of replication is not built yet"
	ctlLater  = "Controller mode is not built yet"
	metrics   = "the metrics exporter is not built yet"
	cold      = "reads of old data never block other requests, so there is no cold-data control"
	dledger   = "DLedger mode is not supported; replication is the way to more than one copy"
	logOnly   = "it only switches log lines of the Java broker"
	statsOnly = "statistics are always kept; idle ones leave by themselves"
)

// Broker returns reason by key for the keys that a broker's file may carry to no effect.
func Broker() map[string]string { return expand(brokerGroups, sharedGroups) }

// Namesrv is Broker for the NameServer's file.
func Namesrv() map[string]string { return expand(namesrvGroups, sharedGroups) }

func expand(tables ...[]group) map[string]string {
	reasons := map[string]string{}
	for _, table := range tables {
		for _, g := range table {
			for key := range strings.FieldsSeq(g.keys) {
				reasons[key] = g.reason
			}
		}
	}
	return reasons
}

var sharedGroups = []group{
	{threads, `serverWorkerThreads serverCallbackExecutorThreads serverSelectorThreads serverOnewaySemaphoreValue
		serverAsyncSemaphoreValue clientWorkerThreads clientCallbackExecutorThreads clientOnewaySemaphoreValue
		clientAsyncSemaphoreValue disableCallbackExecutor disableNettyWorkerGroup serverNettyWorkerGroupEnable`},
	{netty, `serverPooledByteBufAllocatorEnable clientPooledByteBufAllocatorEnable useEpollNativeSelector
		writeBufferHighWaterMark writeBufferLowWaterMark enableFastChannelEventProcess`},
	{"the kernel sizes socket buffers and the accept queue by itself", `serverSocketSndBufSize serverSocketRcvBufSize
		clientSocketSndBufSize clientSocketRcvBufSize serverSocketBacklog`},
	{"a stop always drains the requests at work, for at most 3 seconds", `enableShutdownGracefully shutdownWaitTimeSeconds`},
	{"a connection to a peer is opened on demand and kept while it is used", `connectTimeoutMillis channelNotActiveInterval
		clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout isScanAvailableNameSrv maxReconnectIntervalTimeSeconds
		enableReconnectForGoAway`},
	{"outgoing connections go straight to their peer", `socksProxyConfig`},
	{"outgoing connections follow tls.enable and tls.client.*", `useTLS`},
	{"RocketMQ's home directory is not needed", `rocketmqHome`},
	{"nothing is read from this file but what -c names", `brokerConfigPath authConfigPath configName`},
}

var brokerGroups = []group{
	{threads, `sendMessageThreadPoolNums putMessageFutureThreadPoolNums pullMessageThreadPoolNums litePullMessageThreadPoolNums
		ackMessageThreadPoolNums processReplyMessageThreadPoolNums queryMessageThreadPoolNums adminBrokerThreadPoolNums
		clientManageThreadPoolNums consumerManageThreadPoolNums loadBalanceProcessorThreadPoolNums heartbeatThreadPoolNums
		recoverThreadPoolNums endTransactionThreadPoolNums sendThreadPoolQueueCapacity putThreadPoolQueueCapacity
		pullThreadPoolQueueCapacity litePullThreadPoolQueueCapacity ackThreadPoolQueueCapacity replyThreadPoolQueueCapacity
		queryThreadPoolQueueCapacity clientManagerThreadPoolQueueCapacity consumerManagerThreadPoolQueueCapacity
		heartbeatThreadPoolQueueCapacity endTransactionPoolQueueCapacity adminBrokerThreadPoolQueueCapacity
		loadBalanceThreadPoolQueueCapacity asyncSendEnable highSpeedMode`},
	{"nothing waits in a queue of its own: a request over the bound of its class is refused at once", `brokerFastFailureEnable
		waitTimeMillsInSendQueue waitTimeMillsInPullQueue waitTimeMillsInLitePullQueue waitTimeMillsInHeartbeatQueue
		waitTimeMillsInTransactionQueue waitTimeMillsInAckQueue waitTimeMillsInAdminBrokerQueue
		 `},
	{popLater, `popPollingSize maxPopPollingSize popPollingMapSize popPollingMapExpireTimeSeconds popLongPollingForceNotifyInterval
		  reviveInterval reviveMaxSlow reviveScanTime reviveAckWaitMs enableSkipLongAwaitingAck enablePopLog
		enablePopBufferMerge enablePopBatchAck enableNotifyAfterPopOrderLockRelease enableNotifyBeforePopCalculateLag
		enablePopMessageThreshold popInflightMessageThreshold popCkStayBufferTime popCkStayBufferTimeOut popCkMaxBufferSize
		popCkOffsetMaxQueueSize popReviveConcurrency popReviveMaxAttemptTimes popReviveMaxReturnSizePerRead
		popReviveSkipIfGroupAbsent popResponseReturnActualRetryTopic popFromRetryProbability popFromRetryProbabilityForPriority
		popConsumerFSServiceInit popConsumerKVServiceEnable popConsumerKVServiceInit popConsumerKVServiceLog
		initPopOffsetByCheckMsgInMem enableRetryTopicV2 retrieveMessageFromPopRetryTopicV1 skipWhenCKRePutReachMaxTimes
		appendAckAsync appendCkAsync defaultMessageRequestMode defaultPopShareQueueNum serverLoadBalancerEnable
		loadBalancePollNameServerInterval maxMessageFilterNumForNotification useMessageFilterForNotification
		priorityOrderAsc useSeparateRetryQueue enablePopMetrics`},
	{liteLater, `enableLiteEventMode enableLitePopLog liteEventCheckInterval liteEventFullDispatchDelayTime
		liteEventFullDispatchDelayTimeForWildcardGroup liteLagCountMetricsEnable liteLagLatencyCollectEnable
		liteLagLatencyMetricsEnable liteLagLatencyTopK liteSubscriptionCheckInterval liteSubscriptionCheckTimeoutMills
		liteTtlCheckInterval maxLiteSubscriptionCount minLiteTTl maxClientEventCount enableLmq enableMultiDispatch
		maxLmqConsumeQueueNum enableLmqStats enableLmqQuota`},
	{authLater, `aclEnable authenticationEnabled authenticationProvider authenticationMetadataProvider authenticationStrategy
		authenticationWhitelist authorizationEnabled authorizationProvider authorizationMetadataProvider authorizationStrategy
		authorizationWhitelist initAuthenticationUser innerClientAuthenticationCredentials migrateAuthFromV1Enabled
		aclCacheExpiredSecond aclCacheMaxNum aclCacheRefreshSecond userCacheExpiredSecond userCacheMaxNum userCacheRefreshSecond
		statefulAuthenticationCacheExpiredSecond statefulAuthenticationCacheMaxNum statefulAuthorizationCacheExpiredSecond
		statefulAuthorizationCacheMaxNum`},
	{ctlLater, `enableControllerMode controllerAddr fetchControllerAddrByDnsLookup syncBrokerMetadataPeriod
		checkSyncStateSetPeriod syncControllerMetadataPeriod controllerHeartBeatTimeoutMills brokerElectionPriority
		allAckInSyncStateSet haMaxTimeSlaveNotCatchup storePathEpochFile storePathBrokerIdentity`},
	{"haMaxGapNotInSync replaces it", `haSlaveFallbehindMax`},
	{"a NameServer is asked what it knows, whatever its age", `compatibleWithOldNameSrv sendHeartbeatTimeoutMillis`},
	{haLater, `enableRemoteEscape skipPreOnline lockInStrictMode syncFromLastFile asyncLearner offsetCheckInSlave
		syncMasterFlushOffsetWhenStartup duplicationEnable
		disableConsumeIfConsumerReadSlowly consumerFallbehindThreshold maxSlaveResendLength transferMsgByHeap
		allowRecallWhenBrokerNotWriteable`},
	{metrics, `metricsExporterType metricsPromExporterHost metricsPromExporterPort metricsGrpcExporterTarget
		metricsGrpcExporterHeader metricGrpcExporterTimeOutInMills metricGrpcExporterIntervalInMills
		metricLoggingExporterIntervalInMills metricsLabel metricsInDelta metricsOtelCardinalityLimit
		metricsExportBatchMaxDataPoints enableConnectionMetrics enableLagAndDlqMetrics enableMessageStoreMetrics
		enableRemotingMetrics enableRequestMetrics enableStatsMetrics enableTransactionMetrics
		transactionMetricFlushInterval`},
	{statsOnly, `accountStatsEnable accountStatsPrintZeroValues autoDeleteUnusedStats enableDetailStat maxStatsIdleTimeInMinutes
		enableCalcFilterBitMap estimateAccumulation commercialBaseCount commercialSizePerMsg commercialBigCount
		commercialEnable commercialTimerCount commercialTransCount enableScheduleMessageStats`},
	{"SQL92 filters are not built yet", `enablePropertyFilter filterSupportRetry expectConsumerNumUseFilter maxErrorRateOfBloomFilter
		filterDataCleanTimeSpan bitMapLengthConsumeQueueExt enableConsumeQueueExt mappedFileSizeConsumeQueueExt
		filterServerNums  `},
	{rocksdb, `configManagerVersion persistConsumerOffsetIncrementally useSingleRocksDBForAllConfigs useStaticSubscription
		transactionCheckRocksdbCoreThreads transactionCheckRocksdbMaxThreads transactionCheckRocksdbQueueCapacity
		cleanRocksDBDirtyCQIntervalMin statRocksDBCQIntervalSec memTableFlushIntervalMs realTimePersistRocksDBConfig
		enableRocksDBLog rocksdbCQDoubleWriteEnable combineCQLoadingCQTypes combineCQPreferCQType combineAssignOffsetCQType
		combineCQEnableCheckSelf combineCQMaxExtraSearchCommitLogFiles bottomMostCompressionTypeForConsumeQueueStore
		rocksdbCompressionType rocksdbFlushWalFrequency rocksdbWalFileRollingThreshold transRocksDBEnable
		transWriteOriginTransHalfEnable indexRocksDBEnable indexFileWriteEnable indexFileReadEnable timerRocksDBEnable
		timerRocksDBStopScan timerRocksDBPrecisionMs timerRocksDBRollIntervalHours timerRocksDBRollRangeHours`},
	{timerKey, `  timerPrecisionMs timerMaxDelaySec timerRollWindowSlot timerInterceptDelayLevel timerFlushIntervalMs
		timerGetMessageThreadNum timerPutMessageThreadNum timerEnableDisruptor timerEnableCheckMetrics timerStopEnqueue
		timerStopDequeue timerCheckMetricsWhen timerSkipUnknownError timerWarmEnable timerEnableRetryUntilSuccess
		timerCongestNumEachSlot timerMetricSmallThreshold timerProgressLogIntervalMs mappedFileSizeTimerLog
		timerColdDataCheckIntervalMs timerWheelSnapshotFlush timerReputServiceCorePoolSize recallMessageEnable`},
	{cold, `coldCtrStrategyEnable usePIDColdCtrStrategy cgColdReadThreshold globalColdReadThreshold coldDataFlowControlEnable
		coldDataScanEnable dataReadAheadEnable`},
	{dledger, `enableDLegerCommitLog dLegerGroup dLegerPeers dLegerSelfId preferredLeaderId storePathDLedgerCommitLog isEnableBatchPush
		enableBatchPush`},
	{noMmap, `warmMapedFileEnable flushLeastPagesWhenWarmMapedFile transientStorePoolEnable transientStorePoolSize
		fastFailIfNoBufferInStorePool writeWithoutMmap mappedFileSwapEnable commitLogForceSwapMapInterval
		commitLogSwapMapInterval commitLogSwapMapReserveFileNum logicQueueForceSwapMapInterval logicQueueSwapMapInterval
		cleanSwapedMapInterval logicQueueSwapMapReserveFileNum putConsumeQueueDataByFileChannel
		destroyMapedFileIntervalForcibly redeleteHangedFileInterval osPageCacheBusyTimeOutMills
		commitIntervalCommitLog commitCommitLogLeastPages commitCommitLogThoroughInterval useReentrantLockWhenPutMessage
		useABSLock spinLockCollisionRetreatOptimalDegree debugLockEnable topicQueueLockNum useSpinLock
		dispatchFromSenderThread wakeCommitWhenPutMessage wakeFlushWhenPutMessage enableRunningFlagsInFlush
		correctLogicMinOffsetSleepInterval correctLogicMinOffsetForceInterval diskFallRecorded`},
	{"queues and index are written by one goroutine that follows the log", `enableBuildConsumeQueueConcurrently
		batchDispatchRequestThreadPoolNums dispatchCqThreads dispatchCqCacheNum enableAsyncReput recheckReputOffsetFromCq
		putMsgIndexHightWater maxAsyncPutMessageRequests maxBatchDeleteFilesNum enableLogConsumeQueueRepeatedlyBuildWhenRecover
		enableAcceleratedRecovery recoverConcurrently maxRecoveryCommitlogFiles messageIndexSafe`},
	{"compaction topics are not built yet", `enableCompaction compactionMappedFileSize compactionCqMappedFileSize compactionScheduleInternal
		compactionThreadNum maxOffsetMapSize`},
	{"batch consume queues are not built yet", `mapperFileSizeBatchConsumeQueue searchBcqByCacheEnable maxChecksumRange sampleCountThreshold
		sampleSteps maxConsumeQueueScan pullBatchMaxMessageCount travelCqFileNumWhenGetMessage`},
	{"there is one CommitLog directory", `readOnlyCommitLogStorePaths replicasPerDiskPartition logicalDiskSpaceCleanForciblyThreshold`},
	{"a delayed message is written by the same path as any other", `enableScheduleAsyncDeliver scheduleAsyncDeliverMaxPendingLimit
		scheduleAsyncDeliverMaxResendNum2Blocked`},
	{"registration sends the whole table whenever it changed, and when the period has passed", `enableSplitRegistration
		splitRegistrationSize enableSingleTopicRegister   compressedRegister`},
	{"addresses come from namesrvAddr", `fetchNamesrvAddrByAddressServer fetchNameSrvAddrByDnsLookup fetchNamesrvAddrInterval
		updateNameServerAddrPeriod`},
	{"a broker runs alone in its process", `cleanOfflineBrokerInterval isInBrokerContainer isBrokerContainer`},
	{"proxies and remote brokers are not built yet", `forwardTimeout enableNetWorkFlowControl`},
	{logOnly, `isolateLogEnable printChannelGroups printChannelGroupsMinNum`},
	{"plug-ins are Java classes", `messageStorePlugIn`},
	{"a changed offset table is written as a whole", `  delayOffsetUpdateVersionStep
		flushConsumerOffsetHistoryInterval`},
	{"a record over 127 bytes of topic is always written in the second version of the format", `autoMessageVersionOnTopicLen`},
	{"the property checksum of 5.x is not written; records that carry it are read", `enabledAppendPropCRC forceVerifyPropCRC`},
	{"consumers see confirmed messages only", `readUnCommitted`},
	{"a changed file is written once per interval, whole", `flushCommitLogLeastPages flushConsumeQueueLeastPages
		flushCommitLogThoroughInterval flushConsumeQueueThoroughInterval flushCommitLogTimed`},
	{"expired consume queues go with the log files they point into, at the same pace", `deleteConsumeQueueFilesInterval
		enableCleanExpiredOffset`},
	{"an append waits for the lock of the log and for nothing else", `putMessageTimeout`},
	{"consume queues are RocketMQ's files", `storeType`},
	{"topics may be 127 bytes long, retry and dead-letter topics 255, as on the wire", `maxTopicLength`},
	{"whether a record is still in memory is known, not guessed", `accessMessageInMemoryHotRatio`},
	{"a broker serves as soon as it has started", `disappearTimeAfterStart`},
	{"broadcasting consumers keep their offsets themselves", `enableBroadcastOffsetStore broadcastOffsetExpireSecond
		broadcastOffsetExpireMaxSecond`},
	{"members hear of a change at once", `realTimeNotifyConsumerChange`},
	{"subscriptions go with the last member of their group", `subscriptionExpiredTimeout`},
	{"a topic's retry topics belong to its groups and go with them", `clearRetryTopicWhenDeleteTopic`},
	{"groups of the system are always there", `enableCreateSysGroup`},
	{"the end of a transaction is noted when it is decided; what is noted together is written together", `transactionOpBatchInterval`},
	{"what may be changed while the broker runs is an allow-list", `configBlackList`},
	{"a broker is a member of one cluster, named by brokerClusterName", `clusterName`},
}

var namesrvGroups = []group{
	{threads, `clientRequestThreadPoolNums clientRequestThreadPoolQueueCapacity defaultThreadPoolNums defaultThreadPoolQueueCapacity
		unRegisterBrokerQueueCapacity`},
	{ctlLater, `enableControllerInNamesrv`},
}
