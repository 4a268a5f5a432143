package protocol

import "github.com/quorate/quorate/internal/fastjson"

// TopicConfig is a broker's configuration of a topic (TopicConfig).
type TopicConfig struct {
	TopicName       string            `json:"topicName"`
	ReadQueueNums   int32             `json:"readQueueNums"`
	WriteQueueNums  int32             `json:"writeQueueNums"`
	Perm            int32             `json:"perm"`
	TopicFilterType string            `json:"topicFilterType"`
	TopicSysFlag    int32             `json:"topicSysFlag"`
	Order           bool              `json:"order"`
	Attributes      map[string]string `json:"attributes"` // nil before RocketMQ 5
}

// TopicConfigSerializeWrapper is a table of topics with its version (TopicConfigAndMappingSerializeWrapper, and
// TopicConfigSerializeWrapper of RocketMQ 4, which has no mappings). The mappings of static topics are carried as they are.
type TopicConfigSerializeWrapper struct {
	TopicConfigTable           map[string]TopicConfig  `json:"topicConfigTable"`
	DataVersion                DataVersion             `json:"dataVersion"`
	MappingDataVersion         *DataVersion            `json:"mappingDataVersion"`
	TopicQueueMappingInfoMap   map[string]fastjson.Raw `json:"topicQueueMappingInfoMap"`
	TopicQueueMappingDetailMap map[string]fastjson.Raw `json:"topicQueueMappingDetailMap"`
}

// RegisterBrokerBody is the body of REGISTER_BROKER (RegisterBrokerBody); EncodeRegisterBroker and DecodeRegisterBroker
// know its compressed form.
type RegisterBrokerBody struct {
	TopicConfigSerializeWrapper TopicConfigSerializeWrapper `json:"topicConfigSerializeWrapper"`
	FilterServerList            []string                    `json:"filterServerList"`
}

// CreateTopicListRequestBody is the body of UPDATE_AND_CREATE_TOPIC_LIST (CreateTopicListRequestBody).
type CreateTopicListRequestBody struct {
	TopicConfigList []TopicConfig `json:"topicConfigList"`
}

// TopicOffset is the extent of one queue (TopicOffset); times in ms.
type TopicOffset struct {
	MinOffset           int64 `json:"minOffset"`
	MaxOffset           int64 `json:"maxOffset"`
	LastUpdateTimestamp int64 `json:"lastUpdateTimestamp"`
}

// TopicStatsTable answers GET_TOPIC_STATS_INFO (TopicStatsTable).
type TopicStatsTable struct {
	OffsetTable fastjson.Map[MessageQueue, TopicOffset] `json:"offsetTable"`
	TopicPutTps float64                                 `json:"topicPutTps"`
}

// GroupList answers QUERY_TOPIC_CONSUME_BY_WHO (GroupList).
type GroupList struct {
	GroupList []string `json:"groupList"`
}
