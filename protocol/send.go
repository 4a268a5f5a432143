package protocol

// ConsumerSendMsgBackRequest is ConsumerSendMsgBackRequestHeader, the header of CONSUMER_SEND_MSG_BACK.
type ConsumerSendMsgBackRequest struct {
	Offset            int64  `ext:"offset,required"`
	Group             string `ext:"group,required"`
	DelayLevel        int32  `ext:"delayLevel,required"`
	OriginMsgID       string `ext:"originMsgId"`
	OriginTopic       string `ext:"originTopic"`
	UnitMode          bool   `ext:"unitMode"`
	MaxReconsumeTimes *int32 `ext:"maxReconsumeTimes"`
	RPC
}

// Code returns 36.
func (*ConsumerSendMsgBackRequest) Code() RequestCode { return CodeConsumerSendMsgBack }

// RecallMessageRequest is RecallMessageRequestHeader, the header of RECALL_MESSAGE.
type RecallMessageRequest struct {
	ProducerGroup string `ext:"producerGroup"`
	Topic         string `ext:"topic,required"`
	RecallHandle  string `ext:"recallHandle,required"`
	TopicRPC
}

// Code returns 370.
func (*RecallMessageRequest) Code() RequestCode { return CodeRecallMessage }

// RecallMessageResponse is RecallMessageResponseHeader.
type RecallMessageResponse struct {
	MsgID string `ext:"msgId,required"`
}

// ReplyMessageRequest is ReplyMessageRequestHeader, the header of PUSH_REPLY_MESSAGE_TO_CLIENT.
type ReplyMessageRequest struct {
	ProducerGroup         string `ext:"producerGroup,required"`
	Topic                 string `ext:"topic,required"`
	DefaultTopic          string `ext:"defaultTopic,required"`
	DefaultTopicQueueNums int32  `ext:"defaultTopicQueueNums,required"`
	QueueID               int32  `ext:"queueId,required"`
	SysFlag               int32  `ext:"sysFlag,required"`
	BornTimestamp         int64  `ext:"bornTimestamp,required"`
	Flag                  int32  `ext:"flag,required"`
	Properties            string `ext:"properties"`
	ReconsumeTimes        *int32 `ext:"reconsumeTimes"`
	UnitMode              bool   `ext:"unitMode"`
	BornHost              string `ext:"bornHost,required"`
	StoreHost             string `ext:"storeHost,required"`
	StoreTimestamp        int64  `ext:"storeTimestamp,required"`
	TopicRPC
}

// Code returns 326.
func (*ReplyMessageRequest) Code() RequestCode { return CodePushReplyMessageToClient }

// SendMessageRequest is SendMessageRequestHeader, the header of SEND_MESSAGE.
type SendMessageRequest struct {
	ProducerGroup         string `ext:"producerGroup,required"`
	Topic                 string `ext:"topic,required"`
	DefaultTopic          string `ext:"defaultTopic,required"`
	DefaultTopicQueueNums int32  `ext:"defaultTopicQueueNums,required"`
	QueueID               int32  `ext:"queueId,required"`
	SysFlag               int32  `ext:"sysFlag,required"`
	BornTimestamp         int64  `ext:"bornTimestamp,required"`
	Flag                  int32  `ext:"flag,required"`
	Properties            string `ext:"properties"`
	ReconsumeTimes        *int32 `ext:"reconsumeTimes"`
	UnitMode              *bool  `ext:"unitMode"`
	Batch                 *bool  `ext:"batch"`
	MaxReconsumeTimes     *int32 `ext:"maxReconsumeTimes"`
	TopicRPC
}

// Code returns 10.
func (*SendMessageRequest) Code() RequestCode { return CodeSendMessage }

// SendMessageRequestV2 is SendMessageRequestHeaderV2, the header of SEND_MESSAGE_V2.
type SendMessageRequestV2 struct {
	ProducerGroup         string `ext:"a,required"`
	Topic                 string `ext:"b,required"`
	DefaultTopic          string `ext:"c,required"`
	DefaultTopicQueueNums int32  `ext:"d,required"`
	QueueID               int32  `ext:"e,required"`
	SysFlag               int32  `ext:"f,required"`
	BornTimestamp         int64  `ext:"g,required"`
	Flag                  int32  `ext:"h,required"`
	Properties            string `ext:"i"`
	ReconsumeTimes        *int32 `ext:"j"`
	UnitMode              *bool  `ext:"k"`
	MaxReconsumeTimes     *int32 `ext:"l"`
	Batch                 *bool  `ext:"m"`
	TargetBroker          string `ext:"n"`
}

// Code returns 310.
func (*SendMessageRequestV2) Code() RequestCode { return CodeSendMessageV2 }

// SendMessageResponse is SendMessageResponseHeader.
type SendMessageResponse struct {
	MsgID         string `ext:"msgId,required"`
	QueueID       int32  `ext:"queueId,required"`
	QueueOffset   int64  `ext:"queueOffset,required"`
	TransactionID string `ext:"transactionId"`
	BatchUniqID   string `ext:"batchUniqId"`
	RecallHandle  string `ext:"recallHandle"`
}

// SendReplyMessageRequest is SEND_REPLY_MESSAGE, whose header is that of SendMessageRequest.
type SendReplyMessageRequest struct{ SendMessageRequest }

// Code returns 324.
func (*SendReplyMessageRequest) Code() RequestCode { return CodeSendReplyMessage }

// SendReplyMessageV2Request is SEND_REPLY_MESSAGE_V2, whose header is that of SendMessageRequestV2.
type SendReplyMessageV2Request struct{ SendMessageRequestV2 }

// Code returns 325.
func (*SendReplyMessageV2Request) Code() RequestCode { return CodeSendReplyMessageV2 }

// SendBatchMessageRequest is SEND_BATCH_MESSAGE, whose header is that of SendMessageRequestV2.
type SendBatchMessageRequest struct{ SendMessageRequestV2 }

// Code returns 320.
func (*SendBatchMessageRequest) Code() RequestCode { return CodeSendBatchMessage }
