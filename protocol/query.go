package protocol

// QueryConsumeQueueRequest is QueryConsumeQueueRequestHeader, the header of QUERY_CONSUME_QUEUE.
type QueryConsumeQueueRequest struct {
	Topic         string `ext:"topic"`
	QueueID       *int32 `ext:"queueId"`
	Index         int64  `ext:"index"`
	Count         int32  `ext:"count"`
	ConsumerGroup string `ext:"consumerGroup"`
	TopicRPC
}

// Code returns 321.
func (*QueryConsumeQueueRequest) Code() RequestCode { return CodeQueryConsumeQueue }

// QueryMessageRequest is QueryMessageRequestHeader, the header of QUERY_MESSAGE.
type QueryMessageRequest struct {
	Topic          string `ext:"topic,required"`
	Key            string `ext:"key,required"`
	MaxNum         int32  `ext:"maxNum,required"`
	BeginTimestamp int64  `ext:"beginTimestamp,required"`
	EndTimestamp   int64  `ext:"endTimestamp,required"`
	IndexType      string `ext:"indexType"`
	LastKey        string `ext:"lastKey"`
	TopicRPC
}

// Code returns 12.
func (*QueryMessageRequest) Code() RequestCode { return CodeQueryMessage }

// QueryMessageResponse is QueryMessageResponseHeader.
type QueryMessageResponse struct {
	IndexLastUpdateTimestamp int64 `ext:"indexLastUpdateTimestamp,required"`
	IndexLastUpdatePhyoffset int64 `ext:"indexLastUpdatePhyoffset,required"`
}

// ViewMessageRequest is ViewMessageRequestHeader, the header of VIEW_MESSAGE_BY_ID.
type ViewMessageRequest struct {
	Topic  string `ext:"topic"`
	Offset int64  `ext:"offset,required"`
}

// Code returns 33.
func (*ViewMessageRequest) Code() RequestCode { return CodeViewMessageByID }

// GetTimerCheckPointRequest is GET_TIMER_CHECK_POINT, which has no header fields.
type GetTimerCheckPointRequest struct{}

// Code returns 60.
func (*GetTimerCheckPointRequest) Code() RequestCode { return CodeGetTimerCheckPoint }

// GetTimerMetricsRequest is GET_TIMER_METRICS, which has no header fields.
type GetTimerMetricsRequest struct{}

// Code returns 61.
func (*GetTimerMetricsRequest) Code() RequestCode { return CodeGetTimerMetrics }
