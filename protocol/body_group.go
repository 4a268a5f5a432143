package protocol

import "github.com/quorate/quorate/internal/fastjson"

// SubscriptionGroupConfig is a broker's configuration of a consumer group (SubscriptionGroupConfig).
type SubscriptionGroupConfig struct {
	GroupName                      string            `json:"groupName"`
	ConsumeEnable                  bool              `json:"consumeEnable"`
	ConsumeFromMinEnable           bool              `json:"consumeFromMinEnable"`
	ConsumeBroadcastEnable         bool              `json:"consumeBroadcastEnable"`
	ConsumeMessageOrderly          bool              `json:"consumeMessageOrderly"`
	RetryQueueNums                 int32             `json:"retryQueueNums"`
	RetryMaxTimes                  int32             `json:"retryMaxTimes"`
	GroupRetryPolicy               fastjson.Raw      `json:"groupRetryPolicy"`
	BrokerID                       int64             `json:"brokerId"`
	WhichBrokerWhenConsumeSlowly   int64             `json:"whichBrokerWhenConsumeSlowly"`
	NotifyConsumerIDsChangedEnable bool              `json:"notifyConsumerIdsChangedEnable"`
	GroupSysFlag                   int32             `json:"groupSysFlag"`
	ConsumeTimeoutMinute           int32             `json:"consumeTimeoutMinute"`
	SubscriptionDataSet            fastjson.Raw      `json:"subscriptionDataSet"`
	Attributes                     map[string]string `json:"attributes"`
}

// SubscriptionGroupWrapper answers GET_ALL_SUBSCRIPTIONGROUP_CONFIG (SubscriptionGroupWrapper).
type SubscriptionGroupWrapper struct {
	SubscriptionGroupTable map[string]SubscriptionGroupConfig `json:"subscriptionGroupTable"`
	ForbiddenTable         map[string]map[string]int32        `json:"forbiddenTable"`
	DataVersion            DataVersion                        `json:"dataVersion"`
}

// SubscriptionGroupList is the body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (SubscriptionGroupList).
type SubscriptionGroupList struct {
	GroupConfigList []SubscriptionGroupConfig `json:"groupConfigList"`
}

// ConsumerOffsetSerializeWrapper answers GET_ALL_CONSUMER_OFFSET: offsets by "topic@group" and queue (ConsumerOffsetSerializeWrapper).
type ConsumerOffsetSerializeWrapper struct {
	OffsetTable     map[string]map[int32]int64 `json:"offsetTable"`
	DataVersion     *DataVersion               `json:"dataVersion"`     // absent before RocketMQ 5
	PullOffsetTable map[string]map[int32]int64 `json:"pullOffsetTable"` // RocketMQ 5.5
	GroupTopicMap   map[string][]string        `json:"groupTopicMap"`   // RocketMQ 5.5: topics by group
}

// DelayOffsetSerializeWrapper answers GET_ALL_DELAY_OFFSET: offsets by delay level (DelayOffsetSerializeWrapper).
type DelayOffsetSerializeWrapper struct {
	OffsetTable map[int32]int64 `json:"offsetTable"`
	DataVersion *DataVersion    `json:"dataVersion"` // absent before RocketMQ 5
}

// OffsetWrapper is a group's progress in one queue (OffsetWrapper); the time in ms.
type OffsetWrapper struct {
	BrokerOffset   int64 `json:"brokerOffset"`
	ConsumerOffset int64 `json:"consumerOffset"`
	PullOffset     int64 `json:"pullOffset"`
	LastTimestamp  int64 `json:"lastTimestamp"`
}

// ConsumeStats answers GET_CONSUME_STATS (ConsumeStats).
type ConsumeStats struct {
	OffsetTable fastjson.Map[MessageQueue, OffsetWrapper] `json:"offsetTable"`
	ConsumeTps  float64                                   `json:"consumeTps"`
}

// ConsumeStatsList answers GET_BROKER_CONSUME_STATS (ConsumeStatsList).
type ConsumeStatsList struct {
	ConsumeStatsList  []map[string][]ConsumeStats `json:"consumeStatsList"`
	BrokerAddr        string                      `json:"brokerAddr"`
	TotalDiff         int64                       `json:"totalDiff"`
	TotalInflightDiff int64                       `json:"totalInflightDiff"`
}

// QueueTimeSpan is the span of one queue, in ms (QueueTimeSpan).
type QueueTimeSpan struct {
	MessageQueue     MessageQueue `json:"messageQueue"`
	MinTimeStamp     int64        `json:"minTimeStamp"`
	MaxTimeStamp     int64        `json:"maxTimeStamp"`
	ConsumeTimeStamp int64        `json:"consumeTimeStamp"`
	DelayTime        int64        `json:"delayTime"`
}

// QueryConsumeTimeSpanBody answers QUERY_CONSUME_TIME_SPAN (QueryConsumeTimeSpanBody).
type QueryConsumeTimeSpanBody struct {
	ConsumeTimeSpanSet []QueueTimeSpan `json:"consumeTimeSpanSet"`
}

// QueryCorrectionOffsetBody answers QUERY_CORRECTION_OFFSET: offsets by queue (QueryCorrectionOffsetBody).
type QueryCorrectionOffsetBody struct {
	CorrectionOffsets map[int32]int64 `json:"correctionOffsets"`
}

// QuerySubscriptionResponseBody answers QUERY_SUBSCRIPTION_BY_CONSUMER (QuerySubscriptionResponseBody).
type QuerySubscriptionResponseBody struct {
	SubscriptionData *SubscriptionData `json:"subscriptionData"`
	Group            string            `json:"group"`
	Topic            string            `json:"topic"`
}

// GroupForbidden answers UPDATE_AND_GET_GROUP_FORBIDDEN (GroupForbidden).
type GroupForbidden struct {
	Topic    string `json:"topic"`
	Group    string `json:"group"`
	Readable *bool  `json:"readable"`
}
