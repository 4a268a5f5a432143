package protocol

import (
	"strconv"

	"github.com/quorate/quorate/internal/fastjson"
)

// Bodies are written and read by package fastjson: fields in the order of their JSON names, nil fields left out. The
// product writes empty lists and maps, so whoever fills a body leaves none of them nil unless the product would.

// MessageQueue names one queue (MessageQueue); it is the object key of several bodies.
type MessageQueue struct {
	Topic      string `json:"topic"`
	BrokerName string `json:"brokerName"`
	QueueID    int32  `json:"queueId"`
}

// String names the queue in messages.
func (q MessageQueue) String() string {
	return q.Topic + "@" + q.BrokerName + ":" + strconv.Itoa(int(q.QueueID))
}

// Permission bits of a queue (PermName).
const (
	PermInherit  int32 = 1
	PermWrite    int32 = 2
	PermRead     int32 = 4
	PermPriority int32 = 8
)

// Bits of topicSysFlag (TopicSysFlag).
const (
	TopicUnit    int32 = 1
	TopicUnitSub int32 = 2
)

// QueueData is what one broker offers of a topic (QueueData).
type QueueData struct {
	BrokerName     string `json:"brokerName"`
	ReadQueueNums  int32  `json:"readQueueNums"`
	WriteQueueNums int32  `json:"writeQueueNums"`
	Perm           int32  `json:"perm"`
	TopicSysFlag   int32  `json:"topicSysFlag"`
}

// BrokerData is one broker group with the addresses of its members by broker id, 0 being the master (BrokerData).
type BrokerData struct {
	Cluster            string           `json:"cluster"`
	BrokerName         string           `json:"brokerName"`
	BrokerAddrs        map[int64]string `json:"brokerAddrs"`
	EnableActingMaster bool             `json:"enableActingMaster"`
	ZoneName           string           `json:"zoneName,omitempty"`
}

// TopicRouteData answers GET_ROUTEINFO_BY_TOPIC (TopicRouteData).
type TopicRouteData struct {
	OrderTopicConf            string                  `json:"orderTopicConf,omitempty"`
	QueueDatas                []QueueData             `json:"queueDatas"`
	BrokerDatas               []BrokerData            `json:"brokerDatas"`
	FilterServerTable         map[string][]string     `json:"filterServerTable"`
	TopicQueueMappingByBroker map[string]fastjson.Raw `json:"topicQueueMappingByBroker,omitempty"`
}

// ClusterInfo answers GET_BROKER_CLUSTER_INFO (ClusterInfo).
type ClusterInfo struct {
	BrokerAddrTable  map[string]BrokerData `json:"brokerAddrTable"`
	ClusterAddrTable map[string][]string   `json:"clusterAddrTable"`
}

// TopicList answers the topic list requests (TopicList).
type TopicList struct {
	TopicList  []string `json:"topicList"`
	BrokerAddr string   `json:"brokerAddr,omitempty"`
}

// KVTable answers GET_KVLIST_BY_NAMESPACE, REGISTER_BROKER and GET_BROKER_RUNTIME_INFO (KVTable).
type KVTable struct {
	Table map[string]string `json:"table"`
}

// BrokerMemberGroup is a broker group by member id (BrokerMemberGroup).
type BrokerMemberGroup struct {
	Cluster     string           `json:"cluster"`
	BrokerName  string           `json:"brokerName"`
	BrokerAddrs map[int64]string `json:"brokerAddrs"`
}

// GetBrokerMemberGroupResponseBody answers GET_BROKER_MEMBER_GROUP (GetBrokerMemberGroupResponseBody).
type GetBrokerMemberGroupResponseBody struct {
	BrokerMemberGroup *BrokerMemberGroup `json:"brokerMemberGroup"`
}
