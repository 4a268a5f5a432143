package protocol

// ConsumeMessageDirectlyResultRequest is ConsumeMessageDirectlyResultRequestHeader, the header of CONSUME_MESSAGE_DIRECTLY.
type ConsumeMessageDirectlyResultRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	ClientID      string `ext:"clientId"`
	MsgID         string `ext:"msgId"`
	BrokerName    string `ext:"brokerName"`
	Topic         string `ext:"topic"`
	TopicSysFlag  *int32 `ext:"topicSysFlag"`
	GroupSysFlag  *int32 `ext:"groupSysFlag"`
	TopicRPC
}

// Code returns 309.
func (*ConsumeMessageDirectlyResultRequest) Code() RequestCode { return CodeConsumeMessageDirectly }

// GetAllProducerInfoRequest is GetAllProducerInfoRequestHeader, the header of GET_ALL_PRODUCER_INFO.
type GetAllProducerInfoRequest struct{}

// Code returns 328.
func (*GetAllProducerInfoRequest) Code() RequestCode { return CodeGetAllProducerInfo }

// GetConsumerConnectionListRequest is GetConsumerConnectionListRequestHeader, the header of GET_CONSUMER_CONNECTION_LIST.
type GetConsumerConnectionListRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	RPC
}

// Code returns 203.
func (*GetConsumerConnectionListRequest) Code() RequestCode { return CodeGetConsumerConnectionList }

// GetConsumerListByGroupRequest is GetConsumerListByGroupRequestHeader, the header of GET_CONSUMER_LIST_BY_GROUP.
type GetConsumerListByGroupRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	RPC
}

// Code returns 38.
func (*GetConsumerListByGroupRequest) Code() RequestCode { return CodeGetConsumerListByGroup }

// GetConsumerRunningInfoRequest is GetConsumerRunningInfoRequestHeader, the header of GET_CONSUMER_RUNNING_INFO.
type GetConsumerRunningInfoRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	ClientID      string `ext:"clientId,required"`
	JstackEnable  bool   `ext:"jstackEnable"`
	RPC
}

// Code returns 307.
func (*GetConsumerRunningInfoRequest) Code() RequestCode { return CodeGetConsumerRunningInfo }

// GetConsumerStatusRequest is GetConsumerStatusRequestHeader, the header of INVOKE_BROKER_TO_GET_CONSUMER_STATUS.
type GetConsumerStatusRequest struct {
	Topic      string `ext:"topic,required"`
	Group      string `ext:"group,required"`
	ClientAddr string `ext:"clientAddr"`
	TopicRPC
}

// Code returns 223.
func (*GetConsumerStatusRequest) Code() RequestCode { return CodeInvokeBrokerToGetConsumerStatus }

// GetProducerConnectionListRequest is GetProducerConnectionListRequestHeader, the header of GET_PRODUCER_CONNECTION_LIST.
type GetProducerConnectionListRequest struct {
	ProducerGroup string `ext:"producerGroup,required"`
	RPC
}

// Code returns 204.
func (*GetProducerConnectionListRequest) Code() RequestCode { return CodeGetProducerConnectionList }

// HeartbeatRequest is HeartbeatRequestHeader, the header of HEART_BEAT.
type HeartbeatRequest struct {
	RPC
}

// Code returns 34.
func (*HeartbeatRequest) Code() RequestCode { return CodeHeartBeat }

// LockBatchMqRequest is LockBatchMqRequestHeader, the header of LOCK_BATCH_MQ.
type LockBatchMqRequest struct {
	RPC
}

// Code returns 41.
func (*LockBatchMqRequest) Code() RequestCode { return CodeLockBatchMQ }

// NotifyConsumerIDsChangedRequest is NotifyConsumerIdsChangedRequestHeader, the header of NOTIFY_CONSUMER_IDS_CHANGED.
type NotifyConsumerIDsChangedRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	RPC
}

// Code returns 40.
func (*NotifyConsumerIDsChangedRequest) Code() RequestCode { return CodeNotifyConsumerIDsChanged }

// UnlockBatchMqRequest is UnlockBatchMqRequestHeader, the header of UNLOCK_BATCH_MQ.
type UnlockBatchMqRequest struct {
	RPC
}

// Code returns 42.
func (*UnlockBatchMqRequest) Code() RequestCode { return CodeUnlockBatchMQ }

// UnregisterClientRequest is UnregisterClientRequestHeader, the header of UNREGISTER_CLIENT.
type UnregisterClientRequest struct {
	ClientID      string `ext:"clientID,required"`
	ProducerGroup string `ext:"producerGroup"`
	ConsumerGroup string `ext:"consumerGroup"`
	RPC
}

// Code returns 35.
func (*UnregisterClientRequest) Code() RequestCode { return CodeUnregisterClient }

// CheckClientConfigRequest is CHECK_CLIENT_CONFIG, which has no header fields.
type CheckClientConfigRequest struct{}

// Code returns 46.
func (*CheckClientConfigRequest) Code() RequestCode { return CodeCheckClientConfig }

// GetConsumerStatusFromClientRequest is GET_CONSUMER_STATUS_FROM_CLIENT, whose header is that of GetConsumerStatusRequest.
type GetConsumerStatusFromClientRequest struct{ GetConsumerStatusRequest }

// Code returns 221.
func (*GetConsumerStatusFromClientRequest) Code() RequestCode { return CodeGetConsumerStatusFromClient }
