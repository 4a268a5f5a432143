package protocol

// MessageQueue names one queue of a topic on one broker (RocketMQ MessageQueue). It is also the object key of the maps of
// PROTOCOL §3.12.
type MessageQueue struct {
	BrokerName string `json:"brokerName"`
	QueueID    int32  `json:"queueId"`
	Topic      string `json:"topic"`
}
