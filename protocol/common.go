package protocol

// RPC holds the fields that most request headers inherit (RpcRequestHeader). All are optional.
type RPC struct {
	Namespace    string `ext:"ns"`
	Namespaced   *bool  `ext:"nsd"`
	TargetBroker string `ext:"bname"` // the broker name that the client addresses
	OnewayCall   *bool  `ext:"oway"`
}

// TopicRPC adds the field that requests about a topic inherit (TopicRequestHeader).
type TopicRPC struct {
	RPC
	Logical *bool `ext:"lo"` // the queue id is that of a static topic
}
