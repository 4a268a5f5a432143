package protocol

// DeleteSubscriptionGroupRequest is DeleteSubscriptionGroupRequestHeader, the header of DELETE_SUBSCRIPTIONGROUP.
type DeleteSubscriptionGroupRequest struct {
	GroupName   string `ext:"groupName,required"`
	CleanOffset bool   `ext:"cleanOffset"`
	RPC
}

// Code returns 207.
func (*DeleteSubscriptionGroupRequest) Code() RequestCode { return CodeDeleteSubscriptionGroup }

// GetAllSubscriptionGroupRequest is GetAllSubscriptionGroupRequestHeader, the header of GET_ALL_SUBSCRIPTIONGROUP_CONFIG.
type GetAllSubscriptionGroupRequest struct {
	GroupSeq    *int32 `ext:"groupSeq"`
	DataVersion string `ext:"dataVersion"`
	MaxGroupNum *int32 `ext:"maxGroupNum"`
}

// Code returns 201.
func (*GetAllSubscriptionGroupRequest) Code() RequestCode { return CodeGetAllSubscriptionGroupConfig }

// GetAllSubscriptionGroupResponse is GetAllSubscriptionGroupResponseHeader.
type GetAllSubscriptionGroupResponse struct {
	TotalGroupNum int32 `ext:"totalGroupNum,required"`
}

// GetConsumeStatsInBrokerRequest is GetConsumeStatsInBrokerHeader, the header of GET_BROKER_CONSUME_STATS.
type GetConsumeStatsInBrokerRequest struct {
	IsOrder bool `ext:"isOrder,required"`
}

// Code returns 317.
func (*GetConsumeStatsInBrokerRequest) Code() RequestCode { return CodeGetBrokerConsumeStats }

// GetConsumeStatsRequest is GetConsumeStatsRequestHeader, the header of GET_CONSUME_STATS.
type GetConsumeStatsRequest struct {
	ConsumerGroup string `ext:"consumerGroup,required"`
	Topic         string `ext:"topic"`
	TopicList     string `ext:"topicList"`
	TopicRPC
}

// Code returns 208.
func (*GetConsumeStatsRequest) Code() RequestCode { return CodeGetConsumeStats }

// GetSubscriptionGroupConfigRequest is GetSubscriptionGroupConfigRequestHeader, the header of GET_SUBSCRIPTIONGROUP_CONFIG.
type GetSubscriptionGroupConfigRequest struct {
	Group string `ext:"group,required"`
	RPC
}

// Code returns 352.
func (*GetSubscriptionGroupConfigRequest) Code() RequestCode { return CodeGetSubscriptionGroupConfig }

// QueryConsumeTimeSpanRequest is QueryConsumeTimeSpanRequestHeader, the header of QUERY_CONSUME_TIME_SPAN.
type QueryConsumeTimeSpanRequest struct {
	Topic string `ext:"topic,required"`
	Group string `ext:"group,required"`
	TopicRPC
}

// Code returns 303.
func (*QueryConsumeTimeSpanRequest) Code() RequestCode { return CodeQueryConsumeTimeSpan }

// QuerySubscriptionByConsumerRequest is QuerySubscriptionByConsumerRequestHeader, the header of QUERY_SUBSCRIPTION_BY_CONSUMER.
type QuerySubscriptionByConsumerRequest struct {
	Group string `ext:"group,required"`
	Topic string `ext:"topic"`
	TopicRPC
}

// Code returns 345.
func (*QuerySubscriptionByConsumerRequest) Code() RequestCode { return CodeQuerySubscriptionByConsumer }

// QueryTopicsByConsumerRequest is QueryTopicsByConsumerRequestHeader, the header of QUERY_TOPICS_BY_CONSUMER.
type QueryTopicsByConsumerRequest struct {
	Group string `ext:"group,required"`
	RPC
}

// Code returns 343.
func (*QueryTopicsByConsumerRequest) Code() RequestCode { return CodeQueryTopicsByConsumer }

// UpdateGroupForbiddenRequest is UpdateGroupForbiddenRequestHeader, the header of UPDATE_AND_GET_GROUP_FORBIDDEN.
type UpdateGroupForbiddenRequest struct {
	Group    string `ext:"group,required"`
	Topic    string `ext:"topic,required"`
	Readable *bool  `ext:"readable"`
	TopicRPC
}

// Code returns 353.
func (*UpdateGroupForbiddenRequest) Code() RequestCode { return CodeUpdateAndGetGroupForbidden }

// UpdateAndCreateSubscriptionGroupRequest is UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, which has no header fields.
type UpdateAndCreateSubscriptionGroupRequest struct{}

// Code returns 200.
func (*UpdateAndCreateSubscriptionGroupRequest) Code() RequestCode {
	return CodeUpdateAndCreateSubscriptionGroup
}

// UpdateAndCreateSubscriptionGroupListRequest is UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, which has no header fields.
type UpdateAndCreateSubscriptionGroupListRequest struct{}

// Code returns 225.
func (*UpdateAndCreateSubscriptionGroupListRequest) Code() RequestCode {
	return CodeUpdateAndCreateSubscriptionGroupList
}
