package protocol

import "strconv"

// Request codes (RocketMQ RequestCode of 5.5.0; 50 to 54 are of 4.9.7). Never renumber.
const (
	CodeSendMessage                          RequestCode = 10
	CodePullMessage                          RequestCode = 11
	CodeQueryMessage                         RequestCode = 12
	CodeQueryBrokerOffset                    RequestCode = 13
	CodeQueryConsumerOffset                  RequestCode = 14
	CodeUpdateConsumerOffset                 RequestCode = 15
	CodeUpdateAndCreateTopic                 RequestCode = 17
	CodeUpdateAndCreateTopicList             RequestCode = 18
	CodeGetAllTopicConfig                    RequestCode = 21
	CodeGetTopicConfigList                   RequestCode = 22
	CodeGetTopicNameList                     RequestCode = 23
	CodeUpdateBrokerConfig                   RequestCode = 25
	CodeGetBrokerConfig                      RequestCode = 26
	CodeTriggerDeleteFiles                   RequestCode = 27
	CodeGetBrokerRuntimeInfo                 RequestCode = 28
	CodeSearchOffsetByTimestamp              RequestCode = 29
	CodeGetMaxOffset                         RequestCode = 30
	CodeGetMinOffset                         RequestCode = 31
	CodeGetEarliestMsgStoreTime              RequestCode = 32
	CodeViewMessageByID                      RequestCode = 33
	CodeHeartBeat                            RequestCode = 34
	CodeUnregisterClient                     RequestCode = 35
	CodeConsumerSendMsgBack                  RequestCode = 36
	CodeEndTransaction                       RequestCode = 37
	CodeGetConsumerListByGroup               RequestCode = 38
	CodeCheckTransactionState                RequestCode = 39
	CodeNotifyConsumerIDsChanged             RequestCode = 40
	CodeLockBatchMQ                          RequestCode = 41
	CodeUnlockBatchMQ                        RequestCode = 42
	CodeGetAllConsumerOffset                 RequestCode = 43
	CodeGetAllDelayOffset                    RequestCode = 45
	CodeCheckClientConfig                    RequestCode = 46
	CodeGetClientConfig                      RequestCode = 47
	CodeUpdateAndCreateACLConfig             RequestCode = 50
	CodeDeleteACLConfig                      RequestCode = 51
	CodeGetBrokerClusterACLInfo              RequestCode = 52
	CodeUpdateGlobalWhiteAddrsConfig         RequestCode = 53
	CodeGetBrokerClusterACLConfig            RequestCode = 54
	CodeGetTimerCheckPoint                   RequestCode = 60
	CodeGetTimerMetrics                      RequestCode = 61
	CodePutKVConfig                          RequestCode = 100
	CodeGetKVConfig                          RequestCode = 101
	CodeDeleteKVConfig                       RequestCode = 102
	CodeRegisterBroker                       RequestCode = 103
	CodeUnregisterBroker                     RequestCode = 104
	CodeGetRouteInfoByTopic                  RequestCode = 105
	CodeGetBrokerClusterInfo                 RequestCode = 106
	CodeUpdateAndCreateSubscriptionGroup     RequestCode = 200
	CodeGetAllSubscriptionGroupConfig        RequestCode = 201
	CodeGetTopicStatsInfo                    RequestCode = 202
	CodeGetConsumerConnectionList            RequestCode = 203
	CodeGetProducerConnectionList            RequestCode = 204
	CodeWipeWritePermOfBroker                RequestCode = 205
	CodeGetAllTopicListFromNameServer        RequestCode = 206
	CodeDeleteSubscriptionGroup              RequestCode = 207
	CodeGetConsumeStats                      RequestCode = 208
	CodeSuspendConsumer                      RequestCode = 209
	CodeResumeConsumer                       RequestCode = 210
	CodeResetConsumerOffsetInConsumer        RequestCode = 211
	CodeResetConsumerOffsetInBroker          RequestCode = 212
	CodeAdjustConsumerThreadPool             RequestCode = 213
	CodeWhoConsumeTheMessage                 RequestCode = 214
	CodeDeleteTopicInBroker                  RequestCode = 215
	CodeDeleteTopicInNameServer              RequestCode = 216
	CodeRegisterTopicInNameServer            RequestCode = 217
	CodeGetKVListByNamespace                 RequestCode = 219
	CodeResetConsumerClientOffset            RequestCode = 220
	CodeGetConsumerStatusFromClient          RequestCode = 221
	CodeInvokeBrokerToResetOffset            RequestCode = 222
	CodeInvokeBrokerToGetConsumerStatus      RequestCode = 223
	CodeGetTopicsByCluster                   RequestCode = 224
	CodeUpdateAndCreateSubscriptionGroupList RequestCode = 225
	CodeQueryTopicConsumeByWho               RequestCode = 300
	CodeRegisterFilterServer                 RequestCode = 301
	CodeRegisterMessageFilterClass           RequestCode = 302
	CodeQueryConsumeTimeSpan                 RequestCode = 303
	CodeGetSystemTopicListFromNameServer     RequestCode = 304
	CodeGetSystemTopicListFromBroker         RequestCode = 305
	CodeCleanExpiredConsumeQueue             RequestCode = 306
	CodeGetConsumerRunningInfo               RequestCode = 307
	CodeQueryCorrectionOffset                RequestCode = 308
	CodeConsumeMessageDirectly               RequestCode = 309
	CodeSendMessageV2                        RequestCode = 310
	CodeGetUnitTopicList                     RequestCode = 311
	CodeGetHasUnitSubTopicList               RequestCode = 312
	CodeGetHasUnitSubUnunitTopicList         RequestCode = 313
	CodeCloneGroupOffset                     RequestCode = 314
	CodeViewBrokerStatsData                  RequestCode = 315
	CodeCleanUnusedTopic                     RequestCode = 316
	CodeGetBrokerConsumeStats                RequestCode = 317
	CodeUpdateNameServerConfig               RequestCode = 318
	CodeGetNameServerConfig                  RequestCode = 319
	CodeSendBatchMessage                     RequestCode = 320
	CodeQueryConsumeQueue                    RequestCode = 321
	CodeQueryDataVersion                     RequestCode = 322
	CodeResumeCheckHalfMessage               RequestCode = 323
	CodeSendReplyMessage                     RequestCode = 324
	CodeSendReplyMessageV2                   RequestCode = 325
	CodePushReplyMessageToClient             RequestCode = 326
	CodeAddWritePermOfBroker                 RequestCode = 327
	CodeGetAllProducerInfo                   RequestCode = 328
	CodeDeleteExpiredCommitLog               RequestCode = 329
	CodeQueryTopicsByConsumer                RequestCode = 343
	CodeQuerySubscriptionByConsumer          RequestCode = 345
	CodeGetTopicConfig                       RequestCode = 351
	CodeGetSubscriptionGroupConfig           RequestCode = 352
	CodeUpdateAndGetGroupForbidden           RequestCode = 353
	CodeCheckRocksDBCQWriteProgress          RequestCode = 354
	CodeExportRocksDBConfigToJSON            RequestCode = 355
	CodeLitePullMessage                      RequestCode = 361
	CodeRecallMessage                        RequestCode = 370
	CodeQueryAssignment                      RequestCode = 400
	CodeSetMessageRequestMode                RequestCode = 401
	CodeGetAllMessageRequestMode             RequestCode = 402
	CodeUpdateAndCreateStaticTopic           RequestCode = 513
	CodeGetBrokerMemberGroup                 RequestCode = 901
	CodeAddBroker                            RequestCode = 902
	CodeRemoveBroker                         RequestCode = 903
	CodeBrokerHeartbeat                      RequestCode = 904
	CodeNotifyMinBrokerIDChange              RequestCode = 905
	CodeExchangeBrokerHAInfo                 RequestCode = 906
	CodeGetBrokerHAStatus                    RequestCode = 907
	CodeResetMasterFlushOffset               RequestCode = 908
	CodeControllerAlterSyncStateSet          RequestCode = 1001
	CodeControllerElectMaster                RequestCode = 1002
	CodeControllerRegisterBroker             RequestCode = 1003
	CodeControllerGetReplicaInfo             RequestCode = 1004
	CodeControllerGetMetadataInfo            RequestCode = 1005
	CodeControllerGetSyncStateData           RequestCode = 1006
	CodeGetBrokerEpochCache                  RequestCode = 1007
	CodeNotifyBrokerRoleChanged              RequestCode = 1008
	CodeUpdateControllerConfig               RequestCode = 1009
	CodeGetControllerConfig                  RequestCode = 1010
	CodeCleanBrokerData                      RequestCode = 1011
	CodeControllerGetNextBrokerID            RequestCode = 1012
	CodeControllerApplyBrokerID              RequestCode = 1013
	CodeBrokerCloseChannelRequest            RequestCode = 1014
	CodeCheckNotActiveBrokerRequest          RequestCode = 1015
	CodeGetBrokerLiveInfoRequest             RequestCode = 1016
	CodeGetSyncStateDataRequest              RequestCode = 1017
	CodeRaftBrokerHeartBeatEventRequest      RequestCode = 1018
	CodeUpdateColdDataFlowCtrConfig          RequestCode = 2001
	CodeRemoveColdDataFlowCtrConfig          RequestCode = 2002
	CodeGetColdDataFlowCtrInfo               RequestCode = 2003
	CodeSetCommitLogReadMode                 RequestCode = 2004
	CodeAuthCreateUser                       RequestCode = 3001
	CodeAuthUpdateUser                       RequestCode = 3002
	CodeAuthDeleteUser                       RequestCode = 3003
	CodeAuthGetUser                          RequestCode = 3004
	CodeAuthListUser                         RequestCode = 3005
	CodeAuthCreateACL                        RequestCode = 3006
	CodeAuthUpdateACL                        RequestCode = 3007
	CodeAuthDeleteACL                        RequestCode = 3008
	CodeAuthGetACL                           RequestCode = 3009
	CodeAuthListACL                          RequestCode = 3010
	CodeSwitchTimerEngine                    RequestCode = 5001
	CodePopMessage                           RequestCode = 200050
	CodeAckMessage                           RequestCode = 200051
	CodePeekMessage                          RequestCode = 200052
	CodeChangeMessageInvisibleTime           RequestCode = 200053
	CodeNotification                         RequestCode = 200054
	CodePollingInfo                          RequestCode = 200055
	CodePopRollback                          RequestCode = 200056
	CodePopLiteMessage                       RequestCode = 200070
	CodeLiteSubscriptionCtl                  RequestCode = 200071
	CodeAckLiteMessage                       RequestCode = 200072
	CodeNotifyUnsubscribeLite                RequestCode = 200073
	CodeGetBrokerLiteInfo                    RequestCode = 200074
	CodeGetParentTopicInfo                   RequestCode = 200075
	CodeGetLiteTopicInfo                     RequestCode = 200076
	CodeGetLiteClientInfo                    RequestCode = 200077
	CodeGetLiteGroupInfo                     RequestCode = 200078
	CodeTriggerLiteDispatch                  RequestCode = 200079
	CodeBatchAckMessage                      RequestCode = 200151
)

// Response codes (RocketMQ ResponseCode and RemotingSysResponseCode of 5.5.0). Never renumber.
const (
	RPCTimeOut                           ResponseCode = -1006
	RPCSendToChannelFailed               ResponseCode = -1004
	RPCAddrIsNull                        ResponseCode = -1002
	RPCUnknown                           ResponseCode = -1000
	Success                              ResponseCode = 0
	SystemError                          ResponseCode = 1
	SystemBusy                           ResponseCode = 2
	RequestCodeNotSupported              ResponseCode = 3
	TransactionFailed                    ResponseCode = 4
	FlushDiskTimeout                     ResponseCode = 10
	SlaveNotAvailable                    ResponseCode = 11
	FlushSlaveTimeout                    ResponseCode = 12
	MessageIllegal                       ResponseCode = 13
	ServiceNotAvailable                  ResponseCode = 14
	VersionNotSupported                  ResponseCode = 15
	NoPermission                         ResponseCode = 16
	TopicNotExist                        ResponseCode = 17
	TopicExistAlready                    ResponseCode = 18
	PullNotFound                         ResponseCode = 19
	PullRetryImmediately                 ResponseCode = 20
	PullOffsetMoved                      ResponseCode = 21
	QueryNotFound                        ResponseCode = 22
	SubscriptionParseFailed              ResponseCode = 23
	SubscriptionNotExist                 ResponseCode = 24
	SubscriptionNotLatest                ResponseCode = 25
	SubscriptionGroupNotExist            ResponseCode = 26
	FilterDataNotExist                   ResponseCode = 27
	FilterDataNotLatest                  ResponseCode = 28
	InvalidParameter                     ResponseCode = 29
	TransactionShouldCommit              ResponseCode = 200
	TransactionShouldRollback            ResponseCode = 201
	TransactionStateUnknow               ResponseCode = 202
	TransactionStateGroupWrong           ResponseCode = 203
	NoBuyerID                            ResponseCode = 204
	NotInCurrentUnit                     ResponseCode = 205
	ConsumerNotOnline                    ResponseCode = 206
	ConsumeMsgTimeout                    ResponseCode = 207
	NoMessage                            ResponseCode = 208
	PollingFull                          ResponseCode = 209
	PollingTimeout                       ResponseCode = 210
	BrokerNotExist                       ResponseCode = 211
	BrokerDispatchNotComplete            ResponseCode = 212
	BroadcastConsumption                 ResponseCode = 213
	FlowControl                          ResponseCode = 215
	NotLeaderForQueue                    ResponseCode = 501
	IllegalOperation                     ResponseCode = 604
	GoAway                               ResponseCode = 1500
	ControllerFencedMasterEpoch          ResponseCode = 2000
	ControllerFencedSyncStateSetEpoch    ResponseCode = 2001
	ControllerInvalidMaster              ResponseCode = 2002
	ControllerInvalidReplicas            ResponseCode = 2003
	ControllerMasterNotAvailable         ResponseCode = 2004
	ControllerInvalidRequest             ResponseCode = 2005
	ControllerBrokerNotAlive             ResponseCode = 2006
	ControllerNotLeader                  ResponseCode = 2007
	ControllerBrokerMetadataNotExist     ResponseCode = 2008
	ControllerInvalidCleanBrokerMetadata ResponseCode = 2009
	ControllerBrokerNeedToBeRegistered   ResponseCode = 2010
	ControllerMasterStillExist           ResponseCode = 2011
	ControllerElectMasterFailed          ResponseCode = 2012
	ControllerAlterSyncStateSetFailed    ResponseCode = 2013
	ControllerBrokerIDInvalid            ResponseCode = 2014
	ControllerJRaftInternalError         ResponseCode = 2015
	ControllerBrokerLiveInfoNotExists    ResponseCode = 2016
	LMQQuotaExceeded                     ResponseCode = 2017
	LiteSubscriptionQuotaExceeded        ResponseCode = 2018
	UserNotExist                         ResponseCode = 3001
	PolicyNotExist                       ResponseCode = 3002
)

// String returns the product's name of the code, or the number when it has none.
func (c RequestCode) String() string {
	if n, ok := requestNames[c]; ok {
		return n
	}
	return "REQUEST_" + strconv.Itoa(int(c))
}

// Known reports whether the product knows the code.
func (c RequestCode) Known() bool { _, ok := requestNames[c]; return ok }

// String returns the product's name of the code, or the number when it has none.
func (c ResponseCode) String() string {
	if n, ok := responseNames[c]; ok {
		return n
	}
	return "RESPONSE_" + strconv.Itoa(int(c))
}
