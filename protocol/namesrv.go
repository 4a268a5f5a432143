package protocol

// GetBrokerMemberGroupRequest is GetBrokerMemberGroupRequestHeader, the header of GET_BROKER_MEMBER_GROUP.
type GetBrokerMemberGroupRequest struct {
	ClusterName string `ext:"clusterName,required"`
	BrokerName  string `ext:"brokerName,required"`
}

// Code returns 901.
func (*GetBrokerMemberGroupRequest) Code() RequestCode { return CodeGetBrokerMemberGroup }

// GetTopicsByClusterRequest is GetTopicsByClusterRequestHeader, the header of GET_TOPICS_BY_CLUSTER.
type GetTopicsByClusterRequest struct {
	Cluster string `ext:"cluster,required"`
}

// Code returns 224.
func (*GetTopicsByClusterRequest) Code() RequestCode { return CodeGetTopicsByCluster }

// AddWritePermOfBrokerRequest is AddWritePermOfBrokerRequestHeader, the header of ADD_WRITE_PERM_OF_BROKER.
type AddWritePermOfBrokerRequest struct {
	BrokerName string `ext:"brokerName,required"`
}

// Code returns 327.
func (*AddWritePermOfBrokerRequest) Code() RequestCode { return CodeAddWritePermOfBroker }

// AddWritePermOfBrokerResponse is AddWritePermOfBrokerResponseHeader.
type AddWritePermOfBrokerResponse struct {
	AddTopicCount int32 `ext:"addTopicCount,required"`
}

// BrokerHeartbeatRequest is BrokerHeartbeatRequestHeader, the header of BROKER_HEARTBEAT.
type BrokerHeartbeatRequest struct {
	ClusterName           string `ext:"clusterName,required"`
	BrokerAddr            string `ext:"brokerAddr,required"`
	BrokerName            string `ext:"brokerName,required"`
	BrokerID              *int64 `ext:"brokerId"`
	Epoch                 *int32 `ext:"epoch"`
	MaxOffset             *int64 `ext:"maxOffset"`
	ConfirmOffset         *int64 `ext:"confirmOffset"`
	HeartbeatTimeoutMills *int64 `ext:"heartbeatTimeoutMills"`
	ElectionPriority      *int32 `ext:"electionPriority"`
}

// Code returns 904.
func (*BrokerHeartbeatRequest) Code() RequestCode { return CodeBrokerHeartbeat }

// DeleteKVConfigRequest is DeleteKVConfigRequestHeader, the header of DELETE_KV_CONFIG.
type DeleteKVConfigRequest struct {
	Namespace string `ext:"namespace,required"`
	Key       string `ext:"key,required"`
}

// Code returns 102.
func (*DeleteKVConfigRequest) Code() RequestCode { return CodeDeleteKVConfig }

// DeleteTopicFromNamesrvRequest is DeleteTopicFromNamesrvRequestHeader, the header of DELETE_TOPIC_IN_NAMESRV.
type DeleteTopicFromNamesrvRequest struct {
	Topic       string `ext:"topic,required"`
	ClusterName string `ext:"clusterName"`
	TopicRPC
}

// Code returns 216.
func (*DeleteTopicFromNamesrvRequest) Code() RequestCode { return CodeDeleteTopicInNameServer }

// GetKVConfigRequest is GetKVConfigRequestHeader, the header of GET_KV_CONFIG.
type GetKVConfigRequest struct {
	Namespace string `ext:"namespace,required"`
	Key       string `ext:"key,required"`
}

// Code returns 101.
func (*GetKVConfigRequest) Code() RequestCode { return CodeGetKVConfig }

// GetKVConfigResponse is GetKVConfigResponseHeader.
type GetKVConfigResponse struct {
	Value string `ext:"value"`
}

// GetKVListByNamespaceRequest is GetKVListByNamespaceRequestHeader, the header of GET_KVLIST_BY_NAMESPACE.
type GetKVListByNamespaceRequest struct {
	Namespace string `ext:"namespace,required"`
}

// Code returns 219.
func (*GetKVListByNamespaceRequest) Code() RequestCode { return CodeGetKVListByNamespace }

// GetRouteInfoRequest is GetRouteInfoRequestHeader, the header of GET_ROUTEINFO_BY_TOPIC.
type GetRouteInfoRequest struct {
	Topic                  string `ext:"topic,required"`
	AcceptStandardJSONOnly *bool  `ext:"acceptStandardJsonOnly"`
	TopicRPC
}

// Code returns 105.
func (*GetRouteInfoRequest) Code() RequestCode { return CodeGetRouteInfoByTopic }

// PutKVConfigRequest is PutKVConfigRequestHeader, the header of PUT_KV_CONFIG.
type PutKVConfigRequest struct {
	Namespace string `ext:"namespace,required"`
	Key       string `ext:"key,required"`
	Value     string `ext:"value,required"`
}

// Code returns 100.
func (*PutKVConfigRequest) Code() RequestCode { return CodePutKVConfig }

// QueryDataVersionRequest is QueryDataVersionRequestHeader, the header of QUERY_DATA_VERSION.
type QueryDataVersionRequest struct {
	BrokerName  string `ext:"brokerName,required"`
	BrokerAddr  string `ext:"brokerAddr,required"`
	ClusterName string `ext:"clusterName,required"`
	BrokerID    int64  `ext:"brokerId,required"`
}

// Code returns 322.
func (*QueryDataVersionRequest) Code() RequestCode { return CodeQueryDataVersion }

// QueryDataVersionResponse is QueryDataVersionResponseHeader.
type QueryDataVersionResponse struct {
	Changed bool `ext:"changed,required"`
}

// RegisterBrokerRequest is RegisterBrokerRequestHeader, the header of REGISTER_BROKER.
type RegisterBrokerRequest struct {
	BrokerName             string `ext:"brokerName,required"`
	BrokerAddr             string `ext:"brokerAddr,required"`
	ClusterName            string `ext:"clusterName,required"`
	HAServerAddr           string `ext:"haServerAddr,required"`
	BrokerID               int64  `ext:"brokerId,required"`
	HeartbeatTimeoutMillis *int64 `ext:"heartbeatTimeoutMillis"`
	EnableActingMaster     *bool  `ext:"enableActingMaster"`
	Compressed             bool   `ext:"compressed"`
	BodyCRC32              *int32 `ext:"bodyCrc32"`
}

// Code returns 103.
func (*RegisterBrokerRequest) Code() RequestCode { return CodeRegisterBroker }

// RegisterBrokerResponse is RegisterBrokerResponseHeader.
type RegisterBrokerResponse struct {
	HAServerAddr string `ext:"haServerAddr"`
	MasterAddr   string `ext:"masterAddr"`
}

// RegisterTopicRequest is RegisterTopicRequestHeader, the header of REGISTER_TOPIC_IN_NAMESRV.
type RegisterTopicRequest struct {
	Topic string `ext:"topic,required"`
	TopicRPC
}

// Code returns 217.
func (*RegisterTopicRequest) Code() RequestCode { return CodeRegisterTopicInNameServer }

// UnRegisterBrokerRequest is UnRegisterBrokerRequestHeader, the header of UNREGISTER_BROKER.
type UnRegisterBrokerRequest struct {
	BrokerName  string `ext:"brokerName,required"`
	BrokerAddr  string `ext:"brokerAddr,required"`
	ClusterName string `ext:"clusterName,required"`
	BrokerID    int64  `ext:"brokerId,required"`
}

// Code returns 104.
func (*UnRegisterBrokerRequest) Code() RequestCode { return CodeUnregisterBroker }

// WipeWritePermOfBrokerRequest is WipeWritePermOfBrokerRequestHeader, the header of WIPE_WRITE_PERM_OF_BROKER.
type WipeWritePermOfBrokerRequest struct {
	BrokerName string `ext:"brokerName,required"`
}

// Code returns 205.
func (*WipeWritePermOfBrokerRequest) Code() RequestCode { return CodeWipeWritePermOfBroker }

// WipeWritePermOfBrokerResponse is WipeWritePermOfBrokerResponseHeader.
type WipeWritePermOfBrokerResponse struct {
	WipeTopicCount int32 `ext:"wipeTopicCount,required"`
}

// GetBrokerClusterInfoRequest is GET_BROKER_CLUSTER_INFO, which has no header fields.
type GetBrokerClusterInfoRequest struct{}

// Code returns 106.
func (*GetBrokerClusterInfoRequest) Code() RequestCode { return CodeGetBrokerClusterInfo }

// GetAllTopicListFromNameServerRequest is GET_ALL_TOPIC_LIST_FROM_NAMESERVER, which has no header fields.
type GetAllTopicListFromNameServerRequest struct{}

// Code returns 206.
func (*GetAllTopicListFromNameServerRequest) Code() RequestCode {
	return CodeGetAllTopicListFromNameServer
}

// GetSystemTopicListFromNameServerRequest is GET_SYSTEM_TOPIC_LIST_FROM_NS, which has no header fields.
type GetSystemTopicListFromNameServerRequest struct{}

// Code returns 304.
func (*GetSystemTopicListFromNameServerRequest) Code() RequestCode {
	return CodeGetSystemTopicListFromNameServer
}

// GetUnitTopicListRequest is GET_UNIT_TOPIC_LIST, which has no header fields.
type GetUnitTopicListRequest struct{}

// Code returns 311.
func (*GetUnitTopicListRequest) Code() RequestCode { return CodeGetUnitTopicList }

// GetHasUnitSubTopicListRequest is GET_HAS_UNIT_SUB_TOPIC_LIST, which has no header fields.
type GetHasUnitSubTopicListRequest struct{}

// Code returns 312.
func (*GetHasUnitSubTopicListRequest) Code() RequestCode { return CodeGetHasUnitSubTopicList }

// GetHasUnitSubUnunitTopicListRequest is GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, which has no header fields.
type GetHasUnitSubUnunitTopicListRequest struct{}

// Code returns 313.
func (*GetHasUnitSubUnunitTopicListRequest) Code() RequestCode {
	return CodeGetHasUnitSubUnunitTopicList
}

// UpdateNameServerConfigRequest is UPDATE_NAMESRV_CONFIG, which has no header fields.
type UpdateNameServerConfigRequest struct{}

// Code returns 318.
func (*UpdateNameServerConfigRequest) Code() RequestCode { return CodeUpdateNameServerConfig }

// GetNameServerConfigRequest is GET_NAMESRV_CONFIG, which has no header fields.
type GetNameServerConfigRequest struct{}

// Code returns 319.
func (*GetNameServerConfigRequest) Code() RequestCode { return CodeGetNameServerConfig }
