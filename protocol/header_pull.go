package protocol

// PullView is the header of PULL_MESSAGE and LITE_PULL_MESSAGE, read without copying: its slices alias the ext fields.
type PullView struct {
	ConsumerGroup        []byte
	Topic                []byte
	QueueID              int32
	QueueOffset          int64
	MaxMsgNums           int32
	SysFlag              int32
	CommitOffset         int64
	SuspendTimeoutMillis int64
	Subscription         []byte
	SubVersion           int64
	ExpressionType       []byte
	MaxMsgBytes          int32 // meaningful with HasMaxMsgBytes
	HasMaxMsgBytes       bool
	RequestSource        int32 // 0 when absent
	ProxyForwardClientID []byte
	BrokerName           []byte
}

const (
	pullGroup = iota
	pullTopic
	pullQueueID
	pullQueueOffset
	pullMaxMsgNums
	pullSysFlag
	pullCommitOffset
	pullSuspend
	pullSubVersion
	pullRequired // the number of required fields, which come first
)

var pullRequiredNames = [pullRequired]string{
	"consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset", "suspendTimeoutMillis", "subVersion",
}

// DecodePull reads the header of codes 11 and 361. Same rules as DecodeHeader, without allocation.
func DecodePull(ext ExtFields, into *PullView) error {
	*into = PullView{}
	var seen uint32
	for i := range ext {
		key, value := ext[i].Key, ext[i].Value
		if into.setText(key, value, &seen) || len(value) == 0 {
			continue
		}
		if err := into.setNumber(key, value, &seen); err != nil {
			return err
		}
	}
	if missing := (1<<pullRequired - 1) &^ seen; missing != 0 {
		for f := range pullRequiredNames {
			if missing>>f&1 == 1 {
				return missingField([]byte(pullRequiredNames[f]))
			}
		}
	}
	return nil
}

func (v *PullView) setText(key, value []byte, seen *uint32) bool {
	switch string(key) {
	case "consumerGroup":
		v.ConsumerGroup = value
		*seen |= 1 << pullGroup
	case "topic":
		v.Topic = value
		*seen |= 1 << pullTopic
	case "subscription":
		v.Subscription = value
	case "expressionType":
		v.ExpressionType = value
	case "proxyFrowardClientId": // sic
		v.ProxyForwardClientID = value
	case "bname":
		v.BrokerName = value
	default:
		return false
	}
	return true
}

func (v *PullView) setNumber(key, value []byte, seen *uint32) (err error) {
	field := pullRequired
	switch string(key) {
	case "queueId":
		field = pullQueueID
		v.QueueID, err = int32Field(key, value)
	case "queueOffset":
		field = pullQueueOffset
		v.QueueOffset, err = int64Field(key, value)
	case "maxMsgNums":
		field = pullMaxMsgNums
		v.MaxMsgNums, err = int32Field(key, value)
	case "sysFlag":
		field = pullSysFlag
		v.SysFlag, err = int32Field(key, value)
	case "commitOffset":
		field = pullCommitOffset
		v.CommitOffset, err = int64Field(key, value)
	case "suspendTimeoutMillis":
		field = pullSuspend
		v.SuspendTimeoutMillis, err = int64Field(key, value)
	case "subVersion":
		field = pullSubVersion
		v.SubVersion, err = int64Field(key, value)
	case "maxMsgBytes":
		v.MaxMsgBytes, err = int32Field(key, value)
		v.HasMaxMsgBytes = err == nil
	case "requestSource":
		v.RequestSource, err = int32Field(key, value)
	}
	*seen |= 1 << field
	return err
}
