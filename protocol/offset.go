package protocol

// CloneGroupOffsetRequest is CloneGroupOffsetRequestHeader, the header of CLONE_GROUP_OFFSET.
type CloneGroupOffsetRequest struct {
	SrcGroup  string `ext:"srcGroup,required"`
	DestGroup string `ext:"destGroup,required"`
	Topic     string `ext:"topic"`
	Offline   bool   `ext:"offline"`
	RPC
}

// Code returns 314.
func (*CloneGroupOffsetRequest) Code() RequestCode { return CodeCloneGroupOffset }

// GetEarliestMsgStoretimeRequest is GetEarliestMsgStoretimeRequestHeader, the header of GET_EARLIEST_MSG_STORETIME.
type GetEarliestMsgStoretimeRequest struct {
	Topic   string `ext:"topic,required"`
	QueueID int32  `ext:"queueId,required"`
	TopicRPC
}

// Code returns 32.
func (*GetEarliestMsgStoretimeRequest) Code() RequestCode { return CodeGetEarliestMsgStoreTime }

// GetEarliestMsgStoretimeResponse is GetEarliestMsgStoretimeResponseHeader.
type GetEarliestMsgStoretimeResponse struct {
	Timestamp int64 `ext:"timestamp,required"`
}

// GetMaxOffsetRequest is GetMaxOffsetRequestHeader, the header of GET_MAX_OFFSET.
type GetMaxOffsetRequest struct {
	Topic     string `ext:"topic,required"`
	QueueID   int32  `ext:"queueId,required"`
	Committed *bool  `ext:"committed"`
	TopicRPC
}

// Code returns 30.
func (*GetMaxOffsetRequest) Code() RequestCode { return CodeGetMaxOffset }

// GetMaxOffsetResponse is GetMaxOffsetResponseHeader.
type GetMaxOffsetResponse struct {
	Offset int64 `ext:"offset,required"`
}

// GetMinOffsetRequest is GetMinOffsetRequestHeader, the header of GET_MIN_OFFSET.
type GetMinOffsetRequest struct {
	Topic   string `ext:"topic,required"`
	QueueID int32  `ext:"queueId,required"`
	TopicRPC
}

// Code returns 31.
func (*GetMinOffsetRequest) Code() RequestCode { return CodeGetMinOffset }

// GetMinOffsetResponse is GetMinOffsetResponseHeader.
type GetMinOffsetResponse struct {
	Offset int64 `ext:"offset,required"`
}

// QueryConsumerOffsetRequest is QueryConsumerOffsetRequestHeader, the header of QUERY_CONSUMER_OFFSET.
type QueryConsumerOffsetRequest struct {
	ConsumerGroup     string `ext:"consumerGroup,required"`
	Topic             string `ext:"topic,required"`
	QueueID           int32  `ext:"queueId,required"`
	SetZeroIfNotFound *bool  `ext:"setZeroIfNotFound"`
	TopicRPC
}

// Code returns 14.
func (*QueryConsumerOffsetRequest) Code() RequestCode { return CodeQueryConsumerOffset }

// QueryConsumerOffsetResponse is QueryConsumerOffsetResponseHeader.
type QueryConsumerOffsetResponse struct {
	Offset int64 `ext:"offset,required"`
}

// QueryCorrectionOffsetRequest is QueryCorrectionOffsetHeader, the header of QUERY_CORRECTION_OFFSET.
type QueryCorrectionOffsetRequest struct {
	FilterGroups string `ext:"filterGroups"`
	CompareGroup string `ext:"compareGroup,required"`
	Topic        string `ext:"topic,required"`
	TopicRPC
}

// Code returns 308.
func (*QueryCorrectionOffsetRequest) Code() RequestCode { return CodeQueryCorrectionOffset }

// ResetOffsetRequest is ResetOffsetRequestHeader, the header of INVOKE_BROKER_TO_RESET_OFFSET.
type ResetOffsetRequest struct {
	Group     string `ext:"group,required"`
	Topic     string `ext:"topic,required"`
	QueueID   *int32 `ext:"queueId"`
	Offset    *int64 `ext:"offset"`
	Timestamp int64  `ext:"timestamp,required"`
	IsForce   bool   `ext:"isForce,required"`
	TopicRPC
}

// Code returns 222.
func (*ResetOffsetRequest) Code() RequestCode { return CodeInvokeBrokerToResetOffset }

// SearchOffsetRequest is SearchOffsetRequestHeader, the header of SEARCH_OFFSET_BY_TIMESTAMP.
type SearchOffsetRequest struct {
	Topic        string `ext:"topic,required"`
	LiteTopic    string `ext:"liteTopic"`
	QueueID      int32  `ext:"queueId,required"`
	Timestamp    int64  `ext:"timestamp,required"`
	BoundaryType string `ext:"boundaryType"`
	TopicRPC
}

// Code returns 29.
func (*SearchOffsetRequest) Code() RequestCode { return CodeSearchOffsetByTimestamp }

// SearchOffsetResponse is SearchOffsetResponseHeader.
type SearchOffsetResponse struct {
	Offset int64 `ext:"offset,required"`
}

// UpdateConsumerOffsetRequest is UpdateConsumerOffsetRequestHeader, the header of UPDATE_CONSUMER_OFFSET.
type UpdateConsumerOffsetRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	Topic         string `ext:"topic,required"`
	QueueID       int32  `ext:"queueId,required"`
	CommitOffset  int64  `ext:"commitOffset,required"`
	TopicRPC
}

// Code returns 15.
func (*UpdateConsumerOffsetRequest) Code() RequestCode { return CodeUpdateConsumerOffset }

// GetAllConsumerOffsetRequest is GET_ALL_CONSUMER_OFFSET, which has no header fields.
type GetAllConsumerOffsetRequest struct{}

// Code returns 43.
func (*GetAllConsumerOffsetRequest) Code() RequestCode { return CodeGetAllConsumerOffset }

// GetAllDelayOffsetRequest is GET_ALL_DELAY_OFFSET, which has no header fields.
type GetAllDelayOffsetRequest struct{}

// Code returns 45.
func (*GetAllDelayOffsetRequest) Code() RequestCode { return CodeGetAllDelayOffset }

// ResetConsumerClientOffsetRequest is RESET_CONSUMER_CLIENT_OFFSET, whose header is that of ResetOffsetRequest.
type ResetConsumerClientOffsetRequest struct{ ResetOffsetRequest }

// Code returns 220.
func (*ResetConsumerClientOffsetRequest) Code() RequestCode { return CodeResetConsumerClientOffset }
