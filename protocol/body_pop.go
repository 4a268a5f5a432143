package protocol

// BatchAckMessageRequestBody is the body of BATCH_ACK_MESSAGE (BatchAckMessageRequestBody).
type BatchAckMessageRequestBody struct {
	BrokerName string     `json:"brokerName"`
	Acks       []BatchAck `json:"acks"`
}

// BatchAck acknowledges messages of one popped batch: bit i of BitSet (little endian) is offset StartOffset+i (BatchAck).
type BatchAck struct {
	ConsumerGroup string `json:"c"`
	Topic         string `json:"t"`
	Retry         string `json:"r"`
	StartOffset   int64  `json:"so"`
	QueueID       int32  `json:"q"`
	ReviveQueueID int32  `json:"rq"`
	PopTime       int64  `json:"pt"`
	InvisibleTime int64  `json:"it"`
	BitSet        []byte `json:"b"`
}

// QueryAssignmentRequestBody is the body of QUERY_ASSIGNMENT (QueryAssignmentRequestBody).
type QueryAssignmentRequestBody struct {
	Topic         string `json:"topic"`
	ConsumerGroup string `json:"consumerGroup"`
	ClientID      string `json:"clientId"`
	StrategyName  string `json:"strategyName"`
	MessageModel  string `json:"messageModel"`
}

// QueryAssignmentResponseBody answers QUERY_ASSIGNMENT (QueryAssignmentResponseBody).
type QueryAssignmentResponseBody struct {
	MessageQueueAssignments []MessageQueueAssignment `json:"messageQueueAssignments"`
}

// MessageQueueAssignment is one queue to consume and how, PULL or POP (MessageQueueAssignment).
type MessageQueueAssignment struct {
	MessageQueue MessageQueue      `json:"messageQueue"`
	Mode         string            `json:"mode"`
	Attachments  map[string]string `json:"attachments"`
}

// SetMessageRequestModeRequestBody is the body of SET_MESSAGE_REQUEST_MODE (SetMessageRequestModeRequestBody).
type SetMessageRequestModeRequestBody struct {
	Topic            string `json:"topic"`
	ConsumerGroup    string `json:"consumerGroup"`
	Mode             string `json:"mode"`
	PopShareQueueNum int32  `json:"popShareQueueNum"`
}

// MessageRequestModeSerializeWrapper answers GET_ALL_MESSAGE_REQUEST_MODE, by topic and group (MessageRequestModeSerializeWrapper).
type MessageRequestModeSerializeWrapper struct {
	MessageRequestModeMap map[string]map[string]SetMessageRequestModeRequestBody `json:"messageRequestModeMap"`
}
