package client

import "github.com/quorate/quorate/internal/fastjson"

// The JSON bodies of the requests served here; names are RocketMQ's.

type heartbeatBody struct {
	ClientID    string         `json:"clientID"`
	Producers   []producerBody `json:"producerDataSet"`
	Consumers   []consumerBody `json:"consumerDataSet"`
	Fingerprint int32          `json:"heartbeatFingerprint"`
	WithoutSub  bool           `json:"withoutSub"`
}

type producerBody struct {
	Group string `json:"groupName"`
}

type consumerBody struct {
	Group         string             `json:"groupName"`
	ConsumeType   string             `json:"consumeType"`
	MessageModel  string             `json:"messageModel"`
	FromWhere     string             `json:"consumeFromWhere"`
	Subscriptions []subscriptionBody `json:"subscriptionDataSet"`
	UnitMode      bool               `json:"unitMode"`
}

type subscriptionBody struct {
	ClassFilterMode bool     `json:"classFilterMode"`
	Codes           []int64  `json:"codeSet"` // numbers from Java, decimal strings from Go
	ExpressionType  string   `json:"expressionType"`
	SubString       string   `json:"subString"`
	Version         int64    `json:"subVersion"`
	Tags            []string `json:"tagsSet"`
	Topic           string   `json:"topic"`
}

func (b subscriptionBody) subscription() *Subscription {
	kind := b.ExpressionType
	if kind == "" {
		kind = "TAG"
	}
	return &Subscription{
		Topic: b.Topic, SubString: b.SubString, ExpressionType: kind, Tags: b.Tags, Codes: b.Codes, Version: b.Version,
		ClassFilterMode: b.ClassFilterMode,
	}
}

func bodyOf(s *Subscription) subscriptionBody {
	return subscriptionBody{
		ClassFilterMode: s.ClassFilterMode, Codes: append([]int64{}, s.Codes...), ExpressionType: s.ExpressionType, SubString: s.SubString,
		Version: s.Version, Tags: append([]string{}, s.Tags...), Topic: s.Topic,
	}
}

type queueBody struct {
	Broker string `json:"brokerName"`
	ID     int32  `json:"queueId"`
	Topic  string `json:"topic"`
}

type lockBody struct {
	Group    string      `json:"consumerGroup"`
	ClientID string      `json:"clientId"`
	Queues   []queueBody `json:"mqSet"`
}

type lockedBody struct {
	Queues []queueBody `json:"lockOKMQSet"`
}

type clientConfigBody struct {
	ClientID     string            `json:"clientId"`
	Group        string            `json:"group"`
	Subscription *subscriptionBody `json:"subscriptionData"`
}

type consumerListBody struct {
	IDs []string `json:"consumerIdList"`
}

type connectionBody struct {
	Addr     string `json:"clientAddr"`
	ClientID string `json:"clientId"`
	Language string `json:"language"`
	Version  int32  `json:"version"`
}

type consumerConnectionBody struct {
	Connections   []connectionBody            `json:"connectionSet"`
	FromWhere     string                      `json:"consumeFromWhere"`
	ConsumeType   string                      `json:"consumeType"`
	MessageModel  string                      `json:"messageModel"`
	Subscriptions map[string]subscriptionBody `json:"subscriptionTable"`
}

type producerConnectionBody struct {
	Connections []connectionBody `json:"connectionSet"`
}

type producerTableBody struct {
	Groups map[string][]producerInfoBody `json:"data"`
}

type producerInfoBody struct {
	ClientID   string `json:"clientId"`
	Remote     string `json:"remoteIP"`
	Language   string `json:"language"`
	Version    int32  `json:"version"`
	LastUpdate int64  `json:"lastUpdateTimestamp"`
}

type subscriptionAnswerBody struct {
	Group        string            `json:"group"`
	Subscription *subscriptionBody `json:"subscriptionData,omitempty"`
	Topic        string            `json:"topic"`
}

type groupListBody struct {
	Groups []string `json:"groupList"`
}

type topicListBody struct {
	Topics []string `json:"topicList"`
}

// consumerStatusBody is GetConsumerStatusBody: of one consumer in its answer, of all in ours.
type consumerStatusBody struct {
	Queues    fastjson.Map[queueBody, int64]            `json:"messageQueueTable"`
	Consumers map[string]fastjson.Map[queueBody, int64] `json:"consumerTable"`
}
