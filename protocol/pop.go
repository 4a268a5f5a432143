package protocol

// AckMessageRequest is AckMessageRequestHeader, the header of ACK_MESSAGE.
type AckMessageRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	Topic         string `ext:"topic,required"`
	QueueID       int32  `ext:"queueId,required"`
	ExtraInfo     string `ext:"extraInfo,required"`
	Offset        int64  `ext:"offset,required"`
	LiteTopic     string `ext:"liteTopic"`
	TopicRPC
}

// Code returns 200051.
func (*AckMessageRequest) Code() RequestCode { return CodeAckMessage }

// ChangeInvisibleTimeRequest is ChangeInvisibleTimeRequestHeader, the header of CHANGE_MESSAGE_INVISIBLETIME.
type ChangeInvisibleTimeRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	Topic         string `ext:"topic,required"`
	QueueID       int32  `ext:"queueId,required"`
	ExtraInfo     string `ext:"extraInfo,required"`
	Offset        int64  `ext:"offset,required"`
	InvisibleTime int64  `ext:"invisibleTime,required"`
	LiteTopic     string `ext:"liteTopic"`
	Suspend       *bool  `ext:"suspend"`
	TopicRPC
}

// Code returns 200053.
func (*ChangeInvisibleTimeRequest) Code() RequestCode { return CodeChangeMessageInvisibleTime }

// ChangeInvisibleTimeResponse is ChangeInvisibleTimeResponseHeader.
type ChangeInvisibleTimeResponse struct {
	PopTime       int64 `ext:"popTime,required"`
	InvisibleTime int64 `ext:"invisibleTime,required"`
	ReviveQueueID int32 `ext:"reviveQid,required"`
}

// NotificationRequest is NotificationRequestHeader, the header of NOTIFICATION.
type NotificationRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	Topic         string `ext:"topic,required"`
	QueueID       int32  `ext:"queueId,required"`
	PollTime      int64  `ext:"pollTime,required"`
	BornTime      int64  `ext:"bornTime,required"`
	Order         *bool  `ext:"order"`
	AttemptID     string `ext:"attemptId"`
	ExpType       string `ext:"expType"`
	Exp           string `ext:"exp"`
	TopicRPC
}

// Code returns 200054.
func (*NotificationRequest) Code() RequestCode { return CodeNotification }

// NotificationResponse is NotificationResponseHeader.
type NotificationResponse struct {
	HasMsg      bool  `ext:"hasMsg,required"`
	PollingFull *bool `ext:"pollingFull"`
}

// PeekMessageRequest is PeekMessageRequestHeader, the header of PEEK_MESSAGE.
type PeekMessageRequest struct {
	Topic         string `ext:"topic,required"`
	QueueID       int32  `ext:"queueId,required"`
	MaxMsgNums    int32  `ext:"maxMsgNums,required"`
	ConsumerGroup string `ext:"consumerGroup,required"`
	TopicRPC
}

// Code returns 200052.
func (*PeekMessageRequest) Code() RequestCode { return CodePeekMessage }

// PollingInfoRequest is PollingInfoRequestHeader, the header of POLLING_INFO.
type PollingInfoRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	Topic         string `ext:"topic,required"`
	QueueID       int32  `ext:"queueId,required"`
	TopicRPC
}

// Code returns 200055.
func (*PollingInfoRequest) Code() RequestCode { return CodePollingInfo }

// PollingInfoResponse is PollingInfoResponseHeader.
type PollingInfoResponse struct {
	PollingNum int32 `ext:"pollingNum,required"`
}

// PopMessageRequest is PopMessageRequestHeader, the header of POP_MESSAGE.
type PopMessageRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	Topic         string `ext:"topic,required"`
	QueueID       int32  `ext:"queueId,required"`
	MaxMsgNums    int32  `ext:"maxMsgNums,required"`
	InvisibleTime int64  `ext:"invisibleTime,required"`
	PollTime      int64  `ext:"pollTime,required"`
	BornTime      *int64 `ext:"bornTime"`
	InitMode      int32  `ext:"initMode,required"`
	ExpType       string `ext:"expType"`
	Exp           string `ext:"exp"`
	Order         *bool  `ext:"order"`
	AttemptID     string `ext:"attemptId"`
	TopicRPC
}

// Code returns 200050.
func (*PopMessageRequest) Code() RequestCode { return CodePopMessage }

// PopMessageResponse is PopMessageResponseHeader.
type PopMessageResponse struct {
	PopTime         int64  `ext:"popTime,required"`
	InvisibleTime   int64  `ext:"invisibleTime,required"`
	ReviveQueueID   int32  `ext:"reviveQid,required"`
	RestNum         int64  `ext:"restNum,required"`
	StartOffsetInfo string `ext:"startOffsetInfo"`
	MsgOffsetInfo   string `ext:"msgOffsetInfo"`
	OrderCountInfo  string `ext:"orderCountInfo"`
}

// BatchAckMessageRequest is BATCH_ACK_MESSAGE, which has no header fields.
type BatchAckMessageRequest struct{}

// Code returns 200151.
func (*BatchAckMessageRequest) Code() RequestCode { return CodeBatchAckMessage }

// QueryAssignmentRequest is QUERY_ASSIGNMENT, which has no header fields.
type QueryAssignmentRequest struct{}

// Code returns 400.
func (*QueryAssignmentRequest) Code() RequestCode { return CodeQueryAssignment }

// SetMessageRequestModeRequest is SET_MESSAGE_REQUEST_MODE, which has no header fields.
type SetMessageRequestModeRequest struct{}

// Code returns 401.
func (*SetMessageRequestModeRequest) Code() RequestCode { return CodeSetMessageRequestMode }

// GetAllMessageRequestModeRequest is GET_ALL_MESSAGE_REQUEST_MODE, which has no header fields.
type GetAllMessageRequestModeRequest struct{}

// Code returns 402.
func (*GetAllMessageRequestModeRequest) Code() RequestCode { return CodeGetAllMessageRequestMode }
