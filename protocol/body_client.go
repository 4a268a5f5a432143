package protocol

import "github.com/quorate/quorate/internal/fastjson"

// Values of ConsumeType, MessageModel, ConsumeFromWhere and ExpressionType.
const (
	ConsumeActively  = "CONSUME_ACTIVELY"
	ConsumePassively = "CONSUME_PASSIVELY"
	ConsumePop       = "CONSUME_POP"

	Broadcasting = "BROADCASTING"
	Clustering   = "CLUSTERING"

	ConsumeFromLastOffset  = "CONSUME_FROM_LAST_OFFSET"
	ConsumeFromFirstOffset = "CONSUME_FROM_FIRST_OFFSET"
	ConsumeFromTimestamp   = "CONSUME_FROM_TIMESTAMP"

	ExpressionTag   = "TAG"
	ExpressionSQL92 = "SQL92"
)

// HeartbeatData is the body of HEART_BEAT (HeartbeatData). Fingerprint and WithoutSub are absent before RocketMQ 5 and in Go clients.
type HeartbeatData struct {
	ClientID             string         `json:"clientID"`
	ProducerDataSet      []ProducerData `json:"producerDataSet"`
	ConsumerDataSet      []ConsumerData `json:"consumerDataSet"`
	HeartbeatFingerprint *int32         `json:"heartbeatFingerprint"`
	WithoutSub           *bool          `json:"withoutSub"`
}

// ProducerData is one producer group of a heartbeat (ProducerData).
type ProducerData struct {
	GroupName string `json:"groupName"`
}

// ConsumerData is one consumer group of a heartbeat (ConsumerData).
type ConsumerData struct {
	GroupName           string             `json:"groupName"`
	ConsumeType         string             `json:"consumeType"`
	MessageModel        string             `json:"messageModel"`
	ConsumeFromWhere    string             `json:"consumeFromWhere"`
	SubscriptionDataSet []SubscriptionData `json:"subscriptionDataSet"`
	UnitMode            bool               `json:"unitMode"`
}

// SubscriptionData is what a group wants of a topic (SubscriptionData). The newest SubVersion wins: ms in Java clients, ns
// in Go clients, which also write the codes as strings.
type SubscriptionData struct {
	ClassFilterMode bool     `json:"classFilterMode"`
	Topic           string   `json:"topic"`
	SubString       string   `json:"subString"`
	TagsSet         []string `json:"tagsSet"`
	CodeSet         []int32  `json:"codeSet"`
	SubVersion      int64    `json:"subVersion"`
	ExpressionType  string   `json:"expressionType,omitempty"`
}

// CheckClientRequestBody is the body of CHECK_CLIENT_CONFIG (CheckClientRequestBody).
type CheckClientRequestBody struct {
	ClientID         string            `json:"clientId"`
	Group            string            `json:"group"`
	SubscriptionData *SubscriptionData `json:"subscriptionData"`
	Namespace        string            `json:"namespace,omitempty"`
}

// GetConsumerListByGroupResponseBody answers GET_CONSUMER_LIST_BY_GROUP (GetConsumerListByGroupResponseBody).
type GetConsumerListByGroupResponseBody struct {
	ConsumerIDList []string `json:"consumerIdList"`
}

// LockBatchRequestBody is the body of LOCK_BATCH_MQ and UNLOCK_BATCH_MQ (LockBatchRequestBody, UnlockBatchRequestBody).
type LockBatchRequestBody struct {
	ConsumerGroup  string         `json:"consumerGroup"`
	ClientID       string         `json:"clientId"`
	OnlyThisBroker *bool          `json:"onlyThisBroker"` // absent before RocketMQ 5
	MQSet          []MessageQueue `json:"mqSet"`
}

// LockBatchResponseBody answers LOCK_BATCH_MQ (LockBatchResponseBody).
type LockBatchResponseBody struct {
	LockOKMQSet []MessageQueue `json:"lockOKMQSet"`
}

// Connection is one client connection (Connection).
type Connection struct {
	ClientID   string   `json:"clientId"`
	ClientAddr string   `json:"clientAddr"`
	Language   Language `json:"language"`
	Version    int32    `json:"version"`
}

// ConsumerConnection answers GET_CONSUMER_CONNECTION_LIST (ConsumerConnection).
type ConsumerConnection struct {
	ConnectionSet     []Connection                `json:"connectionSet"`
	SubscriptionTable map[string]SubscriptionData `json:"subscriptionTable"`
	ConsumeType       string                      `json:"consumeType"`
	MessageModel      string                      `json:"messageModel"`
	ConsumeFromWhere  string                      `json:"consumeFromWhere"`
}

// ProducerConnection answers GET_PRODUCER_CONNECTION_LIST (ProducerConnection).
type ProducerConnection struct {
	ConnectionSet []Connection `json:"connectionSet"`
}

// ProducerInfo is one producer (ProducerInfo); the time in ms.
type ProducerInfo struct {
	ClientID            string   `json:"clientId"`
	RemoteIP            string   `json:"remoteIP"`
	Language            Language `json:"language"`
	Version             int32    `json:"version"`
	LastUpdateTimestamp int64    `json:"lastUpdateTimestamp"`
}

// ProducerTableInfo answers GET_ALL_PRODUCER_INFO: producers by group (ProducerTableInfo).
type ProducerTableInfo struct {
	Data map[string][]ProducerInfo `json:"data"`
}

// ConsumerRunningInfo answers GET_CONSUMER_RUNNING_INFO (ConsumerRunningInfo). Brokers pass it on unread.
type ConsumerRunningInfo struct {
	Properties       map[string]string                               `json:"properties"`
	SubscriptionSet  []SubscriptionData                              `json:"subscriptionSet"`
	MQTable          fastjson.Map[MessageQueue, ProcessQueueInfo]    `json:"mqTable"`
	MQPopTable       fastjson.Map[MessageQueue, PopProcessQueueInfo] `json:"mqPopTable"`
	StatusTable      map[string]ConsumeStatus                        `json:"statusTable"`
	UserConsumerInfo map[string]string                               `json:"userConsumerInfo"`
	Jstack           string                                          `json:"jstack,omitempty"`
}

// ProcessQueueInfo is a client's state of one queue (ProcessQueueInfo); times in ms.
type ProcessQueueInfo struct {
	CommitOffset            int64 `json:"commitOffset"`
	CachedMsgMinOffset      int64 `json:"cachedMsgMinOffset"`
	CachedMsgMaxOffset      int64 `json:"cachedMsgMaxOffset"`
	CachedMsgCount          int32 `json:"cachedMsgCount"`
	CachedMsgSizeInMiB      int32 `json:"cachedMsgSizeInMiB"`
	TransactionMsgMinOffset int64 `json:"transactionMsgMinOffset"`
	TransactionMsgMaxOffset int64 `json:"transactionMsgMaxOffset"`
	TransactionMsgCount     int32 `json:"transactionMsgCount"`
	Locked                  bool  `json:"locked"`
	TryUnlockTimes          int64 `json:"tryUnlockTimes"`
	LastLockTimestamp       int64 `json:"lastLockTimestamp"`
	Dropped                 bool  `json:"droped"` // spelt so on the wire
	LastPullTimestamp       int64 `json:"lastPullTimestamp"`
	LastConsumeTimestamp    int64 `json:"lastConsumeTimestamp"`
}

// PopProcessQueueInfo is a client's state of one queue it pops from (PopProcessQueueInfo).
type PopProcessQueueInfo struct {
	WaitAckCount     int32 `json:"waitAckCount"`
	Dropped          bool  `json:"droped"` // spelt so on the wire
	LastPopTimestamp int64 `json:"lastPopTimestamp"`
}

// ConsumeStatus is a client's rates of one topic, times in ms (ConsumeStatus).
type ConsumeStatus struct {
	PullRT            float64 `json:"pullRT"`
	PullTPS           float64 `json:"pullTPS"`
	ConsumeRT         float64 `json:"consumeRT"`
	ConsumeOKTPS      float64 `json:"consumeOKTPS"`
	ConsumeFailedTPS  float64 `json:"consumeFailedTPS"`
	ConsumeFailedMsgs int64   `json:"consumeFailedMsgs"`
}

// ConsumeMessageDirectlyResult answers CONSUME_MESSAGE_DIRECTLY (ConsumeMessageDirectlyResult).
type ConsumeMessageDirectlyResult struct {
	Order          bool   `json:"order"`
	AutoCommit     bool   `json:"autoCommit"`
	ConsumeResult  string `json:"consumeResult"` // CMResult: CR_SUCCESS, CR_LATER, …
	Remark         string `json:"remark,omitempty"`
	SpentTimeMills int64  `json:"spentTimeMills"`
}

// GetConsumerStatusBody answers GET_CONSUMER_STATUS_FROM_CLIENT and its broker-side twin (GetConsumerStatusBody).
type GetConsumerStatusBody struct {
	MessageQueueTable fastjson.Map[MessageQueue, int64]            `json:"messageQueueTable"`
	ConsumerTable     map[string]fastjson.Map[MessageQueue, int64] `json:"consumerTable"`
}

// ResetOffsetBody is the body of RESET_CONSUMER_CLIENT_OFFSET and the answer of INVOKE_BROKER_TO_RESET_OFFSET (ResetOffsetBody).
type ResetOffsetBody struct {
	OffsetTable fastjson.Map[MessageQueue, int64] `json:"offsetTable"`
}

// ResetOffsetBodyForC is the form of ResetOffsetBody for C++ clients (ResetOffsetBodyForC).
type ResetOffsetBodyForC struct {
	OffsetTable []MessageQueueForC `json:"offsetTable"`
}

// MessageQueueForC is one entry of ResetOffsetBodyForC (MessageQueueForC).
type MessageQueueForC struct {
	Topic      string `json:"topic"`
	BrokerName string `json:"brokerName"`
	QueueID    int32  `json:"queueId"`
	Offset     int64  `json:"offset"`
}
