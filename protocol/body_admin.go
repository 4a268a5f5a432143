package protocol

// BrokerStatsItem is one span of a statistic (BrokerStatsItem).
type BrokerStatsItem struct {
	Sum   int64   `json:"sum"`
	Tps   float64 `json:"tps"`
	Avgpt float64 `json:"avgpt"` // average per event
}

// BrokerStatsData answers VIEW_BROKER_STATS_DATA (BrokerStatsData).
type BrokerStatsData struct {
	StatsMinute BrokerStatsItem `json:"statsMinute"`
	StatsHour   BrokerStatsItem `json:"statsHour"`
	StatsDay    BrokerStatsItem `json:"statsDay"`
}

// ConsumeQueueData is one ConsumeQueue unit as QUERY_CONSUME_QUEUE shows it (ConsumeQueueData).
type ConsumeQueueData struct {
	PhysicOffset   int64  `json:"physicOffset"`
	PhysicSize     int32  `json:"physicSize"`
	TagsCode       int64  `json:"tagsCode"`
	ExtendDataJSON string `json:"extendDataJson,omitempty"`
	BitMap         string `json:"bitMap,omitempty"`
	Eval           bool   `json:"eval"`
	Msg            string `json:"msg,omitempty"`
}

// QueryConsumeQueueResponseBody answers QUERY_CONSUME_QUEUE (QueryConsumeQueueResponseBody).
type QueryConsumeQueueResponseBody struct {
	SubscriptionData *SubscriptionData  `json:"subscriptionData"`
	FilterData       string             `json:"filterData,omitempty"`
	QueueData        []ConsumeQueueData `json:"queueData"`
	MaxQueueIndex    int64              `json:"maxQueueIndex"`
	MinQueueIndex    int64              `json:"minQueueIndex"`
}

// TopicMetrics counts messages of one topic (TimerMetrics.Metric, TransactionMetrics.Metric); the time in ms.
type TopicMetrics struct {
	Count     int64 `json:"count"`
	TimeStamp int64 `json:"timeStamp"`
}

// TimerMetrics answers GET_TIMER_METRICS (TimerMetrics.TimerMetricsSerializeWrapper).
type TimerMetrics struct {
	TimingCount map[string]TopicMetrics `json:"timingCount"`
	DataVersion DataVersion             `json:"dataVersion"`
}

// UserInfo is a user (UserInfo).
type UserInfo struct {
	Username   string `json:"username"`
	Password   string `json:"password,omitempty"`
	UserType   string `json:"userType,omitempty"`
	UserStatus string `json:"userStatus,omitempty"`
}

// ACLInfo is what a subject may do (AclInfo).
type ACLInfo struct {
	Subject  string       `json:"subject"`
	Policies []PolicyInfo `json:"policies"`
}

// PolicyInfo is a list of rules of one kind (AclInfo.PolicyInfo).
type PolicyInfo struct {
	PolicyType string            `json:"policyType,omitempty"`
	Entries    []PolicyEntryInfo `json:"entries"`
}

// PolicyEntryInfo is one rule (AclInfo.PolicyEntryInfo).
type PolicyEntryInfo struct {
	Resource  string   `json:"resource"`
	Actions   []string `json:"actions"`
	SourceIPs []string `json:"sourceIps"`
	Decision  string   `json:"decision"`
}
