package protocol

// CreateTopicListRequest is CreateTopicListRequestHeader, the header of UPDATE_AND_CREATE_TOPIC_LIST.
type CreateTopicListRequest struct {
	RPC
}

// Code returns 18.
func (*CreateTopicListRequest) Code() RequestCode { return CodeUpdateAndCreateTopicList }

// CreateTopicRequest is CreateTopicRequestHeader, the header of UPDATE_AND_CREATE_TOPIC.
type CreateTopicRequest struct {
	Topic           string `ext:"topic,required"`
	DefaultTopic    string `ext:"defaultTopic,required"`
	ReadQueueNums   int32  `ext:"readQueueNums,required"`
	WriteQueueNums  int32  `ext:"writeQueueNums,required"`
	Perm            int32  `ext:"perm,required"`
	TopicFilterType string `ext:"topicFilterType,required"`
	TopicSysFlag    *int32 `ext:"topicSysFlag"`
	Order           bool   `ext:"order,required"`
	Attributes      string `ext:"attributes"`
	Force           *bool  `ext:"force"`
	TopicRPC
}

// Code returns 17.
func (*CreateTopicRequest) Code() RequestCode { return CodeUpdateAndCreateTopic }

// DeleteTopicRequest is DeleteTopicRequestHeader, the header of DELETE_TOPIC_IN_BROKER.
type DeleteTopicRequest struct {
	Topic string `ext:"topic,required"`
	TopicRPC
}

// Code returns 215.
func (*DeleteTopicRequest) Code() RequestCode { return CodeDeleteTopicInBroker }

// GetAllTopicConfigRequest is GetAllTopicConfigRequestHeader, the header of GET_ALL_TOPIC_CONFIG.
type GetAllTopicConfigRequest struct {
	TopicSeq    *int32 `ext:"topicSeq"`
	DataVersion string `ext:"dataVersion"`
	MaxTopicNum *int32 `ext:"maxTopicNum"`
}

// Code returns 21.
func (*GetAllTopicConfigRequest) Code() RequestCode { return CodeGetAllTopicConfig }

// GetAllTopicConfigResponse is GetAllTopicConfigResponseHeader.
type GetAllTopicConfigResponse struct {
	TotalTopicNum *int32 `ext:"totalTopicNum"`
}

// GetTopicConfigRequest is GetTopicConfigRequestHeader, the header of GET_TOPIC_CONFIG.
type GetTopicConfigRequest struct {
	Topic string `ext:"topic,required"`
	TopicRPC
}

// Code returns 351.
func (*GetTopicConfigRequest) Code() RequestCode { return CodeGetTopicConfig }

// GetTopicStatsInfoRequest is GetTopicStatsInfoRequestHeader, the header of GET_TOPIC_STATS_INFO.
type GetTopicStatsInfoRequest struct {
	Topic string `ext:"topic,required"`
	TopicRPC
}

// Code returns 202.
func (*GetTopicStatsInfoRequest) Code() RequestCode { return CodeGetTopicStatsInfo }

// QueryTopicConsumeByWhoRequest is QueryTopicConsumeByWhoRequestHeader, the header of QUERY_TOPIC_CONSUME_BY_WHO.
type QueryTopicConsumeByWhoRequest struct {
	Topic string `ext:"topic,required"`
	TopicRPC
}

// Code returns 300.
func (*QueryTopicConsumeByWhoRequest) Code() RequestCode { return CodeQueryTopicConsumeByWho }

// GetSystemTopicListFromBrokerRequest is GET_SYSTEM_TOPIC_LIST_FROM_BROKER, which has no header fields.
type GetSystemTopicListFromBrokerRequest struct{}

// Code returns 305.
func (*GetSystemTopicListFromBrokerRequest) Code() RequestCode {
	return CodeGetSystemTopicListFromBroker
}

// CleanUnusedTopicRequest is CLEAN_UNUSED_TOPIC, which has no header fields.
type CleanUnusedTopicRequest struct{}

// Code returns 316.
func (*CleanUnusedTopicRequest) Code() RequestCode { return CodeCleanUnusedTopic }
