package protocol

// Unserved says of each known code that no server here routes why it does not. Whoever serves a code removes its line.
// Such a request is answered at once with RequestCodeNotSupported.
var Unserved = map[RequestCode]string{
	CodeQueryBrokerOffset:             unusedInProduct,
	CodeGetTopicConfigList:            unusedInProduct,
	CodeGetTopicNameList:              unusedInProduct,
	CodeTriggerDeleteFiles:            unusedInProduct,
	CodeGetClientConfig:               unusedInProduct,
	CodeSuspendConsumer:               unusedInProduct,
	CodeResumeConsumer:                unusedInProduct,
	CodeResetConsumerOffsetInConsumer: unusedInProduct,
	CodeResetConsumerOffsetInBroker:   unusedInProduct,
	CodeAdjustConsumerThreadPool:      unusedInProduct,
	CodeWhoConsumeTheMessage:          unusedInProduct,
	CodeRegisterFilterServer:          unusedInProduct,
	CodeRegisterMessageFilterClass:    unusedInProduct,

	CodeCheckTransactionState:       sentToClients,
	CodeNotifyConsumerIDsChanged:    sentToClients,
	CodeResetConsumerClientOffset:   sentToClients,
	CodeGetConsumerStatusFromClient: sentToClients,
	CodePushReplyMessageToClient:    sentToClients,
	CodeNotifyUnsubscribeLite:       sentToClients,

	CodeUpdateAndCreateACLConfig:     aclOfRocketMQ4,
	CodeDeleteACLConfig:              aclOfRocketMQ4,
	CodeGetBrokerClusterACLInfo:      aclOfRocketMQ4,
	CodeUpdateGlobalWhiteAddrsConfig: aclOfRocketMQ4,
	CodeGetBrokerClusterACLConfig:    aclOfRocketMQ4,

	CodeAuthCreateUser: awaitsAuth,
	CodeAuthUpdateUser: awaitsAuth,
	CodeAuthDeleteUser: awaitsAuth,
	CodeAuthGetUser:    awaitsAuth,
	CodeAuthListUser:   awaitsAuth,
	CodeAuthCreateACL:  awaitsAuth,
	CodeAuthUpdateACL:  awaitsAuth,
	CodeAuthDeleteACL:  awaitsAuth,
	CodeAuthGetACL:     awaitsAuth,
	CodeAuthListACL:    awaitsAuth,

	CodePopMessage:                 awaitsPop,
	CodeAckMessage:                 awaitsPop,
	CodeBatchAckMessage:            awaitsPop,
	CodePeekMessage:                awaitsPop,
	CodeChangeMessageInvisibleTime: awaitsPop,
	CodeNotification:               awaitsPop,
	CodePollingInfo:                awaitsPop,
	CodePopRollback:                awaitsPop,
	CodeQueryAssignment:            awaitsPop,
	CodeSetMessageRequestMode:      awaitsPop,
	CodeGetAllMessageRequestMode:   awaitsPop,

	CodeGetTimerCheckPoint: awaitsTimer,
	CodeGetTimerMetrics:    awaitsTimer,
	CodeRecallMessage:      awaitsTimer,
	CodeSwitchTimerEngine:  awaitsTimer,

	CodeResetMasterFlushOffset: awaitsReplication,

	CodeControllerAlterSyncStateSet: awaitsController,
	CodeControllerElectMaster:       awaitsController,
	CodeControllerRegisterBroker:    awaitsController,
	CodeControllerGetReplicaInfo:    awaitsController,
	CodeControllerGetMetadataInfo:   awaitsController,
	CodeControllerGetSyncStateData:  awaitsController,
	CodeGetBrokerEpochCache:         awaitsController,
	CodeNotifyBrokerRoleChanged:     awaitsController,
	CodeUpdateControllerConfig:      awaitsController,
	CodeGetControllerConfig:         awaitsController,
	CodeCleanBrokerData:             awaitsController,
	CodeControllerGetNextBrokerID:   awaitsController,
	CodeControllerApplyBrokerID:     awaitsController,

	CodeBrokerCloseChannelRequest:       insideJRaft,
	CodeCheckNotActiveBrokerRequest:     insideJRaft,
	CodeGetBrokerLiveInfoRequest:        insideJRaft,
	CodeGetSyncStateDataRequest:         insideJRaft,
	CodeRaftBrokerHeartBeatEventRequest: insideJRaft,

	CodeAddBroker:    "only a BrokerContainer answers it; one process here is one broker",
	CodeRemoveBroker: "only a BrokerContainer answers it; one process here is one broker",

	CodeUpdateAndCreateStaticTopic: "static topics are not supported",

	CodeCheckRocksDBCQWriteProgress: "there is no RocksDB store",
	CodeExportRocksDBConfigToJSON:   "there is no RocksDB store",

	CodeUpdateColdDataFlowCtrConfig: "there is no cold-data flow control: reads never map the log",
	CodeRemoveColdDataFlowCtrConfig: "there is no cold-data flow control: reads never map the log",
	CodeGetColdDataFlowCtrInfo:      "there is no cold-data flow control: reads never map the log",
	CodeSetCommitLogReadMode:        "the log is read by position, not mapped: there is no read mode to set",

	CodePopLiteMessage:      noLiteTopics,
	CodeLiteSubscriptionCtl: noLiteTopics,
	CodeAckLiteMessage:      noLiteTopics,
	CodeGetBrokerLiteInfo:   noLiteTopics,
	CodeGetParentTopicInfo:  noLiteTopics,
	CodeGetLiteTopicInfo:    noLiteTopics,
	CodeGetLiteClientInfo:   noLiteTopics,
	CodeGetLiteGroupInfo:    noLiteTopics,
	CodeTriggerLiteDispatch: noLiteTopics,
}

const (
	unusedInProduct   = "RocketMQ defines the code and neither sends nor answers it"
	sentToClients     = "sent by brokers to clients"
	aclOfRocketMQ4    = "access control of RocketMQ 4, gone in RocketMQ 5"
	awaitsAuth        = "access control is not built yet"
	awaitsPop         = "POP consumption is not built yet"
	awaitsTimer       = "exact timed messages are not built yet"
	awaitsReplication = "replication is not built yet"
	awaitsController  = "the Controller is not built yet"
	insideJRaft       = "internal to RocketMQ's JRaft Controller"
	noLiteTopics      = "lite topics are not supported"
)
