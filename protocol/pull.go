package protocol

// PullMessageRequest is PullMessageRequestHeader, the header of PULL_MESSAGE.
type PullMessageRequest struct {
	ConsumerGroup        string `ext:"consumerGroup,required"`
	Topic                string `ext:"topic,required"`
	LiteTopic            string `ext:"liteTopic"`
	QueueID              int32  `ext:"queueId,required"`
	QueueOffset          int64  `ext:"queueOffset,required"`
	MaxMsgNums           int32  `ext:"maxMsgNums,required"`
	SysFlag              int32  `ext:"sysFlag,required"`
	CommitOffset         int64  `ext:"commitOffset,required"`
	SuspendTimeoutMillis int64  `ext:"suspendTimeoutMillis,required"`
	Subscription         string `ext:"subscription"`
	SubVersion           int64  `ext:"subVersion,required"`
	ExpressionType       string `ext:"expressionType"`
	MaxMsgBytes          *int32 `ext:"maxMsgBytes"`
	RequestSource        *int32 `ext:"requestSource"`
	ProxyFrowardClientID string `ext:"proxyFrowardClientId"`
	TopicRPC
}

// Code returns 11.
func (*PullMessageRequest) Code() RequestCode { return CodePullMessage }

// PullMessageResponse is PullMessageResponseHeader.
type PullMessageResponse struct {
	SuggestWhichBrokerID int64  `ext:"suggestWhichBrokerId,required"`
	NextBeginOffset      int64  `ext:"nextBeginOffset,required"`
	MinOffset            int64  `ext:"minOffset,required"`
	MaxOffset            int64  `ext:"maxOffset,required"`
	OffsetDelta          *int64 `ext:"offsetDelta"`
	TopicSysFlag         *int32 `ext:"topicSysFlag"`
	GroupSysFlag         *int32 `ext:"groupSysFlag"`
	ForbiddenType        *int32 `ext:"forbiddenType"`
}

// LitePullMessageRequest is LITE_PULL_MESSAGE, whose header is that of PullMessageRequest.
type LitePullMessageRequest struct{ PullMessageRequest }

// Code returns 361.
func (*LitePullMessageRequest) Code() RequestCode { return CodeLitePullMessage }
