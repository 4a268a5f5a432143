package protocol

import "slices"

// RequestType describes one request code that has a typed header.
type RequestType struct {
	Request      Request // a pointer to a zero header
	Response     any     // the same of the answer; nil when the answer has no fields
	Body         any     // a pointer to a zero body; nil when there is none or it is not JSON
	ResponseBody any     // the same of the answer
}

// RequestTypes lists every request with a typed header, in the order of the codes. Its values are fresh.
func RequestTypes() []RequestType {
	return slices.Concat(messageTypes(), registryTypes(), adminTypes(), clusterTypes())
}

// messageTypes are those below 100: messages, offsets, topics.
func messageTypes() []RequestType {
	return []RequestType{
		{Request: &SendMessageRequest{}, Response: &SendMessageResponse{}},
		{Request: &PullMessageRequest{}, Response: &PullMessageResponse{}},
		{Request: &QueryMessageRequest{}, Response: &QueryMessageResponse{}},
		{Request: &QueryConsumerOffsetRequest{}, Response: &QueryConsumerOffsetResponse{}},
		{Request: &UpdateConsumerOffsetRequest{}},
		{Request: &CreateTopicRequest{}},
		{Request: &CreateTopicListRequest{}, Body: &CreateTopicListRequestBody{}},
		{Request: &GetAllTopicConfigRequest{}, Response: &GetAllTopicConfigResponse{}, ResponseBody: &TopicConfigSerializeWrapper{}},
		{Request: &UpdateBrokerConfigRequest{}},
		{Request: &GetBrokerConfigRequest{}, Response: &GetBrokerConfigResponse{}},
		{Request: &GetBrokerRuntimeInfoRequest{}, ResponseBody: &KVTable{}},
		{Request: &SearchOffsetRequest{}, Response: &SearchOffsetResponse{}},
		{Request: &GetMaxOffsetRequest{}, Response: &GetMaxOffsetResponse{}},
		{Request: &GetMinOffsetRequest{}, Response: &GetMinOffsetResponse{}},
		{Request: &GetEarliestMsgStoretimeRequest{}, Response: &GetEarliestMsgStoretimeResponse{}},
		{Request: &ViewMessageRequest{}},
		{Request: &HeartbeatRequest{}, Body: &HeartbeatData{}},
		{Request: &UnregisterClientRequest{}},
		{Request: &ConsumerSendMsgBackRequest{}},
		{Request: &EndTransactionRequest{}},
		{Request: &GetConsumerListByGroupRequest{}, ResponseBody: &GetConsumerListByGroupResponseBody{}},
		{Request: &CheckTransactionStateRequest{}, Response: &CheckTransactionStateResponse{}},
		{Request: &NotifyConsumerIDsChangedRequest{}},
		{Request: &LockBatchMqRequest{}, Body: &LockBatchRequestBody{}, ResponseBody: &LockBatchResponseBody{}},
		{Request: &UnlockBatchMqRequest{}, Body: &LockBatchRequestBody{}},
		{Request: &GetAllConsumerOffsetRequest{}, ResponseBody: &ConsumerOffsetSerializeWrapper{}},
		{Request: &GetAllDelayOffsetRequest{}, ResponseBody: &DelayOffsetSerializeWrapper{}},
		{Request: &CheckClientConfigRequest{}, Body: &CheckClientRequestBody{}},
		{Request: &GetTimerCheckPointRequest{}},
		{Request: &GetTimerMetricsRequest{}, ResponseBody: &TimerMetrics{}},
	}
}

// registryTypes are those from 100 to 299: NameServer, groups.
func registryTypes() []RequestType {
	return []RequestType{
		{Request: &PutKVConfigRequest{}},
		{Request: &GetKVConfigRequest{}, Response: &GetKVConfigResponse{}},
		{Request: &DeleteKVConfigRequest{}},
		{Request: &RegisterBrokerRequest{}, Response: &RegisterBrokerResponse{}, Body: &RegisterBrokerBody{}, ResponseBody: &KVTable{}},
		{Request: &UnRegisterBrokerRequest{}},
		{Request: &GetRouteInfoRequest{}, ResponseBody: &TopicRouteData{}},
		{Request: &GetBrokerClusterInfoRequest{}, ResponseBody: &ClusterInfo{}},
		{Request: &UpdateAndCreateSubscriptionGroupRequest{}, Body: &SubscriptionGroupConfig{}},
		{Request: &GetAllSubscriptionGroupRequest{}, Response: &GetAllSubscriptionGroupResponse{}, ResponseBody: &SubscriptionGroupWrapper{}},
		{Request: &GetTopicStatsInfoRequest{}, ResponseBody: &TopicStatsTable{}},
		{Request: &GetConsumerConnectionListRequest{}, ResponseBody: &ConsumerConnection{}},
		{Request: &GetProducerConnectionListRequest{}, ResponseBody: &ProducerConnection{}},
		{Request: &WipeWritePermOfBrokerRequest{}, Response: &WipeWritePermOfBrokerResponse{}},
		{Request: &GetAllTopicListFromNameServerRequest{}, ResponseBody: &TopicList{}},
		{Request: &DeleteSubscriptionGroupRequest{}},
		{Request: &GetConsumeStatsRequest{}, ResponseBody: &ConsumeStats{}},
		{Request: &DeleteTopicRequest{}},
		{Request: &DeleteTopicFromNamesrvRequest{}},
		{Request: &RegisterTopicRequest{}, Body: &TopicRouteData{}},
		{Request: &GetKVListByNamespaceRequest{}, ResponseBody: &KVTable{}},
		{Request: &ResetConsumerClientOffsetRequest{}, Body: &ResetOffsetBody{}},
		{Request: &GetConsumerStatusFromClientRequest{}, ResponseBody: &GetConsumerStatusBody{}},
		{Request: &ResetOffsetRequest{}, ResponseBody: &ResetOffsetBody{}},
		{Request: &GetConsumerStatusRequest{}, ResponseBody: &GetConsumerStatusBody{}},
		{Request: &GetTopicsByClusterRequest{}, ResponseBody: &TopicList{}},
		{Request: &UpdateAndCreateSubscriptionGroupListRequest{}, Body: &SubscriptionGroupList{}},
	}
}

// adminTypes are those from 300 to 899: maintenance.
func adminTypes() []RequestType {
	return []RequestType{
		{Request: &QueryTopicConsumeByWhoRequest{}, ResponseBody: &GroupList{}},
		{Request: &QueryConsumeTimeSpanRequest{}, ResponseBody: &QueryConsumeTimeSpanBody{}},
		{Request: &GetSystemTopicListFromNameServerRequest{}, ResponseBody: &TopicList{}},
		{Request: &GetSystemTopicListFromBrokerRequest{}, ResponseBody: &TopicList{}},
		{Request: &CleanExpiredConsumeQueueRequest{}},
		{Request: &GetConsumerRunningInfoRequest{}, ResponseBody: &ConsumerRunningInfo{}},
		{Request: &QueryCorrectionOffsetRequest{}, ResponseBody: &QueryCorrectionOffsetBody{}},
		{Request: &ConsumeMessageDirectlyResultRequest{}, ResponseBody: &ConsumeMessageDirectlyResult{}},
		{Request: &SendMessageRequestV2{}, Response: &SendMessageResponse{}},
		{Request: &GetUnitTopicListRequest{}, ResponseBody: &TopicList{}},
		{Request: &GetHasUnitSubTopicListRequest{}, ResponseBody: &TopicList{}},
		{Request: &GetHasUnitSubUnunitTopicListRequest{}, ResponseBody: &TopicList{}},
		{Request: &CloneGroupOffsetRequest{}},
		{Request: &ViewBrokerStatsDataRequest{}, ResponseBody: &BrokerStatsData{}},
		{Request: &CleanUnusedTopicRequest{}},
		{Request: &GetConsumeStatsInBrokerRequest{}, ResponseBody: &ConsumeStatsList{}},
		{Request: &UpdateNameServerConfigRequest{}},
		{Request: &GetNameServerConfigRequest{}},
		{Request: &SendBatchMessageRequest{}, Response: &SendMessageResponse{}},
		{Request: &QueryConsumeQueueRequest{}, ResponseBody: &QueryConsumeQueueResponseBody{}},
		{Request: &QueryDataVersionRequest{}, Response: &QueryDataVersionResponse{}, Body: &DataVersion{}, ResponseBody: &DataVersion{}},
		{Request: &ResumeCheckHalfMessageRequest{}},
		{Request: &SendReplyMessageRequest{}, Response: &SendMessageResponse{}},
		{Request: &SendReplyMessageV2Request{}, Response: &SendMessageResponse{}},
		{Request: &ReplyMessageRequest{}},
		{Request: &AddWritePermOfBrokerRequest{}, Response: &AddWritePermOfBrokerResponse{}},
		{Request: &GetAllProducerInfoRequest{}, ResponseBody: &ProducerTableInfo{}},
		{Request: &DeleteExpiredCommitLogRequest{}},
		{Request: &QueryTopicsByConsumerRequest{}, ResponseBody: &TopicList{}},
		{Request: &QuerySubscriptionByConsumerRequest{}, ResponseBody: &QuerySubscriptionResponseBody{}},
		{Request: &GetTopicConfigRequest{}, ResponseBody: &TopicConfig{}},
		{Request: &GetSubscriptionGroupConfigRequest{}, ResponseBody: &SubscriptionGroupConfig{}},
		{Request: &UpdateGroupForbiddenRequest{}, ResponseBody: &GroupForbidden{}},
		{Request: &LitePullMessageRequest{}, Response: &PullMessageResponse{}},
		{Request: &RecallMessageRequest{}, Response: &RecallMessageResponse{}},
		{Request: &QueryAssignmentRequest{}, Body: &QueryAssignmentRequestBody{}, ResponseBody: &QueryAssignmentResponseBody{}},
		{Request: &SetMessageRequestModeRequest{}, Body: &SetMessageRequestModeRequestBody{}},
		{Request: &GetAllMessageRequestModeRequest{}, ResponseBody: &MessageRequestModeSerializeWrapper{}},
	}
}

// clusterTypes are those from 900: replication, Controller, access control, POP.
func clusterTypes() []RequestType {
	return []RequestType{
		{Request: &GetBrokerMemberGroupRequest{}, ResponseBody: &GetBrokerMemberGroupResponseBody{}},
		{Request: &AddBrokerRequest{}},
		{Request: &RemoveBrokerRequest{}},
		{Request: &BrokerHeartbeatRequest{}},
		{Request: &NotifyMinBrokerIDChangeRequest{}},
		{Request: &ExchangeHAInfoRequest{}, Response: &ExchangeHAInfoResponse{}},
		{Request: &GetBrokerHAStatusRequest{}, ResponseBody: &HARuntimeInfo{}},
		{Request: &ResetMasterFlushOffsetRequest{}},
		{Request: &AlterSyncStateSetRequest{}, Response: &AlterSyncStateSetResponse{}, Body: &SyncStateSet{}, ResponseBody: &SyncStateSet{}},
		{Request: &ElectMasterRequest{}, Response: &ElectMasterResponse{}, ResponseBody: &ElectMasterResponseBody{}},
		{Request: &RegisterBrokerToControllerRequest{}, Response: &RegisterBrokerToControllerResponse{}, ResponseBody: &SyncStateSet{}},
		{Request: &GetReplicaInfoRequest{}, Response: &GetReplicaInfoResponse{}, ResponseBody: &SyncStateSet{}},
		{Request: &ControllerGetMetadataInfoRequest{}, Response: &GetMetaDataResponse{}},
		{Request: &ControllerGetSyncStateDataRequest{}, Body: &[]string{}, ResponseBody: &BrokerReplicasInfo{}},
		{Request: &GetBrokerEpochCacheRequest{}, ResponseBody: &EpochEntryCache{}},
		{Request: &NotifyBrokerRoleChangedRequest{}, Body: &SyncStateSet{}},
		{Request: &UpdateControllerConfigRequest{}},
		{Request: &GetControllerConfigRequest{}},
		{Request: &CleanControllerBrokerDataRequest{}},
		{Request: &GetNextBrokerIDRequest{}, Response: &GetNextBrokerIDResponse{}},
		{Request: &ApplyBrokerIDRequest{}, Response: &ApplyBrokerIDResponse{}},
		{Request: &CreateUserRequest{}, Body: &UserInfo{}},
		{Request: &UpdateUserRequest{}, Body: &UserInfo{}},
		{Request: &DeleteUserRequest{}},
		{Request: &GetUserRequest{}, ResponseBody: &UserInfo{}},
		{Request: &ListUsersRequest{}, ResponseBody: &[]UserInfo{}},
		{Request: &CreateACLRequest{}, Body: &ACLInfo{}},
		{Request: &UpdateACLRequest{}, Body: &ACLInfo{}},
		{Request: &DeleteACLRequest{}},
		{Request: &GetACLRequest{}, ResponseBody: &ACLInfo{}},
		{Request: &ListACLsRequest{}, ResponseBody: &[]ACLInfo{}},
		{Request: &PopMessageRequest{}, Response: &PopMessageResponse{}},
		{Request: &AckMessageRequest{}},
		{Request: &PeekMessageRequest{}},
		{Request: &ChangeInvisibleTimeRequest{}, Response: &ChangeInvisibleTimeResponse{}},
		{Request: &NotificationRequest{}, Response: &NotificationResponse{}},
		{Request: &PollingInfoRequest{}, Response: &PollingInfoResponse{}},
		{Request: &BatchAckMessageRequest{}, Body: &BatchAckMessageRequestBody{}},
	}
}
