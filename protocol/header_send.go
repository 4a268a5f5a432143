package protocol

// SendView is the header of SEND_MESSAGE in either form, read without copying: its slices alias the ext fields.
type SendView struct {
	ProducerGroup         []byte
	Topic                 []byte
	DefaultTopic          []byte
	DefaultTopicQueueNums int32
	QueueID               int32
	SysFlag               int32
	BornTimestamp         int64 // milliseconds since the epoch
	Flag                  int32
	Properties            []byte // encoded property string, empty when absent
	ReconsumeTimes        int32  // 0 when absent
	UnitMode              bool
	MaxReconsumeTimes     int32 // meaningful with HasMaxReconsumeTimes
	HasMaxReconsumeTimes  bool
	Batch                 bool
	BrokerName            []byte
}

// sendField numbers the fields of a send header in the order of the one-letter names a to n.
type sendField uint8

const sendFields = 14

var sendNames = [sendFields]string{
	"producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag",
	"properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes", "batch", "bname",
}

// sendRequired are the fields a to h (SendMessageRequestHeader, CFNotNull).
const sendRequired = 1<<8 - 1

// DecodeSendV2 reads the one-letter header of codes 310, 320 and 325. Same rules as DecodeHeader, without allocation.
func DecodeSendV2(ext ExtFields, into *SendView) error {
	*into = SendView{}
	var seen uint32
	for i := range ext {
		key := ext[i].Key
		if len(key) != 1 || key[0] < 'a' || key[0] > 'n' {
			continue
		}
		if err := into.set(sendField(key[0]-'a'), key, ext[i].Value, &seen); err != nil {
			return err
		}
	}
	if missing := sendRequired &^ seen; missing != 0 {
		for f := range sendFields {
			if missing>>f&1 == 1 {
				return missingField([]byte{'a' + byte(f)})
			}
		}
	}
	return nil
}

// DecodeSendV1 reads the header of codes 10 and 324. Same rules as DecodeHeader, without allocation.
func DecodeSendV1(ext ExtFields, into *SendView) error {
	*into = SendView{}
	var seen uint32
	for i := range ext {
		for f := range sendNames {
			if string(ext[i].Key) != sendNames[f] {
				continue
			}
			if err := into.set(sendField(f), ext[i].Key, ext[i].Value, &seen); err != nil {
				return err
			}
			break
		}
	}
	if missing := sendRequired &^ seen; missing != 0 {
		for f := range sendNames {
			if missing>>f&1 == 1 {
				return missingField([]byte(sendNames[f]))
			}
		}
	}
	return nil
}

func (v *SendView) set(f sendField, key, value []byte, seen *uint32) error {
	text := true
	switch f {
	case 0:
		v.ProducerGroup = value
	case 1:
		v.Topic = value
	case 2:
		v.DefaultTopic = value
	case 8:
		v.Properties = value
	case 13:
		v.BrokerName = value
	default:
		text = false
	}
	if !text {
		if len(value) == 0 {
			return nil
		}
		if err := v.setValue(f, key, value); err != nil {
			return err
		}
	}
	*seen |= 1 << f
	return nil
}

func (v *SendView) setValue(f sendField, key, value []byte) (err error) {
	switch f {
	case 3:
		v.DefaultTopicQueueNums, err = int32Field(key, value)
	case 4:
		v.QueueID, err = int32Field(key, value)
	case 5:
		v.SysFlag, err = int32Field(key, value)
	case 6:
		v.BornTimestamp, err = int64Field(key, value)
	case 7:
		v.Flag, err = int32Field(key, value)
	case 9:
		v.ReconsumeTimes, err = int32Field(key, value)
	case 10:
		v.UnitMode, err = boolField(key, value)
	case 11:
		v.MaxReconsumeTimes, err = int32Field(key, value)
		v.HasMaxReconsumeTimes = err == nil
	case 12:
		v.Batch, err = boolField(key, value)
	}
	return err
}

func int32Field(key, value []byte) (int32, error) {
	n, ok := parseInt(value)
	if !ok || n != int64(int32(n)) {
		return 0, wrongValue(key, "int32", value)
	}
	return int32(n), nil
}

func int64Field(key, value []byte) (int64, error) {
	n, ok := parseInt(value)
	if !ok {
		return 0, wrongValue(key, "int64", value)
	}
	return n, nil
}

func boolField(key, value []byte) (bool, error) {
	b, ok := parseBool(value)
	if !ok {
		return false, wrongValue(key, "bool", value)
	}
	return b, nil
}
