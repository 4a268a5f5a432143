package client

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/message"
)

// Message is one message to send. Properties are the user's own; tags, keys and delay are set by their fields.
type Message struct {
	Topic      string
	Body       []byte
	Tags       string
	Keys       []string
	DelayLevel int // 1..18, 0 is now
	Flag       int32
	Properties map[string]string
}

// Received is one message as a consumer gets it.
type Received struct {
	Queue          Queue
	Topic          string
	Offset         int64 // in the queue
	PhysicalOffset int64 // in the log of its broker
	UniqueKey      string
	OffsetID       string
	Body           []byte
	Tags           string
	Keys           []string
	Flag           int32
	ReconsumeTimes int32
	Born, Stored   time.Time
	BornHost       string
	StoreHost      string
	Properties     map[string]string
	SysFlag        message.SysFlag
	PreparedOffset int64
}

// bodyBytesMax bounds a decompressed body.
const bodyBytesMax = 64 << 20

// compressionType is the field of the system flag that says how a body is compressed (RocketMQ CompressionType): zero, in
// messages of older clients, and 3 are zlib.
const (
	compressionMask = 0x700
	compressionZlib = 0x300
)

// encode returns the property block of m with the unique key id.
func (m *Message) encode(id string, more ...string) message.Properties {
	pairs := maps.Clone(m.Properties)
	if pairs == nil {
		pairs = map[string]string{}
	}
	pairs[message.UniqueKey] = id
	if m.Tags != "" {
		pairs[message.Tags] = m.Tags
	}
	if len(m.Keys) > 0 {
		pairs[message.Keys] = strings.Join(m.Keys, " ")
	}
	if m.DelayLevel > 0 {
		pairs[message.DelayTimeLevel] = strconv.Itoa(m.DelayLevel)
	}
	for i := 0; i+1 < len(more); i += 2 {
		pairs[more[i]] = more[i+1]
	}
	return message.MakeProperties(pairs)
}

// DecodeRecords decodes the concatenated records of a pull, a view or a query.
func DecodeRecords(broker string, b []byte) ([]*Received, error) {
	var all []*Received
	for len(b) > 0 {
		r, err := message.DecodeRecord(b, true)
		if err != nil {
			return nil, fmt.Errorf("record %d of an answer: %w", len(all), err)
		}
		b = b[r.Size:]
		all = append(all, newReceived(broker, &r))
	}
	return all, nil
}

func newReceived(broker string, r *message.Record) *Received {
	topic := string(r.Topic)
	m := &Received{
		Queue: Queue{Topic: topic, BrokerName: broker, QueueID: r.QueueID}, Topic: topic, Offset: r.QueueOffset, PhysicalOffset: r.PhysicalOffset,
		OffsetID: message.OffsetID(r.StoreHost, r.PhysicalOffset), Body: slices.Clone(r.Body), Flag: r.Flag,
		ReconsumeTimes: r.ReconsumeTimes, Born: time.UnixMilli(r.BornTimestamp), Stored: time.UnixMilli(r.StoreTimestamp),
		BornHost: r.BornHost.String(), StoreHost: r.StoreHost.String(), Properties: message.ParseProperties(r.Properties),
		SysFlag: r.SysFlag, PreparedOffset: r.PreparedTransactionOffset,
	}
	m.UniqueKey = m.Properties[message.UniqueKey]
	m.Tags = m.Properties[message.Tags]
	m.Keys = strings.Fields(m.Properties[message.Keys])
	if r.SysFlag&message.FlagCompressed != 0 {
		kind := r.SysFlag & compressionMask
		if kind != 0 && kind != compressionZlib {
			return m // LZ4 and zstd stay as they are: this client shows messages, it does not own them
		}
		// A producer may say compressed of what is not: the message is shown as it is, so that it hides none behind it.
		if body, err := inflate(m.Body); err == nil {
			m.Body = body
		}
	}
	return m
}

func inflate(b []byte) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(z, bodyBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(body) > bodyBytesMax {
		return nil, fmt.Errorf("longer than %d bytes", bodyBytesMax)
	}
	return body, z.Close()
}

// tagsOf lists the tags of an expression `a || b`; nil for all.
func tagsOf(expression string) []string {
	if expression == "" || expression == "*" {
		return nil
	}
	var tags []string
	for tag := range strings.SplitSeq(expression, "||") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}
