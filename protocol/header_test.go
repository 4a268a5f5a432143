package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/protocol"
)

type queueNumber int32

type addressed struct {
	BrokerName string `ext:"bname"`
}

type sampleHeader struct {
	Topic    string      `ext:"topic,required"`
	Queue    queueNumber `ext:"queueId,required"`
	Offset   *int64      `ext:"offset"`
	Wanted   *bool       `ext:"wanted"`
	Remark   *string     `ext:"remark"`
	Plain    bool        `ext:"plain"`
	Optional string      `ext:"optional"`
	Local    string
	addressed
}

func (*sampleHeader) Code() protocol.RequestCode { return 4711 }

func TestHeadersSurviveEncodingAndDecoding(t *testing.T) {
	offset, yes, empty := int64(1)<<62, true, ""
	for _, h := range []sampleHeader{
		{},
		{Topic: "t", Queue: -7, Plain: true},
		{Topic: "", Queue: 1, Offset: &offset, Wanted: &yes, Remark: &empty, Optional: "o", addressed: addressed{"b"}},
	} {
		cmd := protocol.NewRequest(&h, []byte("body"))
		require.Equal(t, int32(4711), cmd.Code)
		require.Equal(t, "body", string(cmd.Body))
		var back sampleHeader
		require.NoError(t, protocol.DecodeHeader(cmd.Ext, &back))
		require.Equal(t, h, back)
	}
	require.Equal(t, protocol.ExtFields(nil).Add("topic", "").Add("queueId", "0").Add("plain", "false"), protocol.AppendHeader(nil, sampleHeader{Local: "x"}))
	require.Nil(t, protocol.AppendHeader(nil, nil))
	require.Nil(t, protocol.AppendHeader(nil, (*sampleHeader)(nil)))
}

func TestHeaderFaultsNameTheField(t *testing.T) {
	full := func() protocol.ExtFields { return protocol.ExtFields(nil).Add("topic", "t").Add("queueId", "1") }
	for _, tc := range []struct {
		ext   protocol.ExtFields
		field string
	}{
		{protocol.ExtFields(nil).Add("topic", "t"), "queueId is missing"},
		{protocol.ExtFields(nil).Add("queueId", "1"), "topic is missing"},
		{full().Add("queueId", "x"), "queueId is not of type int32"},
		{full().Add("queueId", "2147483648"), "queueId"},
		{full().Add("queueId", "1.5"), "queueId"},
		{full().Add("offset", "9223372036854775808"), "offset is not of type int64"},
		{full().Add("wanted", "maybe"), "wanted is not of type bool"},
	} {
		var h sampleHeader
		err := protocol.DecodeHeader(tc.ext, &h)
		var wire *protocol.Error
		require.ErrorAs(t, err, &wire)
		require.Contains(t, wire.Remark, tc.field)
	}
	var h sampleHeader
	require.NoError(t, protocol.DecodeHeader(full().Add("unknown", "x").Add("wanted", "TRUE").Add("offset", "").Add("topic", "last"), &h))
	require.True(t, *h.Wanted)
	require.Nil(t, h.Offset)
	require.Equal(t, "last", h.Topic)
}

// The typed twins of the hand-written codecs, as PROTOCOL lists them.
type sendV2 struct {
	ProducerGroup         string `ext:"a,required"`
	Topic                 string `ext:"b,required"`
	DefaultTopic          string `ext:"c,required"`
	DefaultTopicQueueNums int32  `ext:"d,required"`
	QueueID               int32  `ext:"e,required"`
	SysFlag               int32  `ext:"f,required"`
	BornTimestamp         int64  `ext:"g,required"`
	Flag                  int32  `ext:"h,required"`
	Properties            string `ext:"i"`
	ReconsumeTimes        int32  `ext:"j"`
	UnitMode              bool   `ext:"k"`
	MaxReconsumeTimes     *int32 `ext:"l"`
	Batch                 bool   `ext:"m"`
	BrokerName            string `ext:"n"`
}

type sendV1 struct {
	ProducerGroup         string `ext:"producerGroup,required"`
	Topic                 string `ext:"topic,required"`
	DefaultTopic          string `ext:"defaultTopic,required"`
	DefaultTopicQueueNums int32  `ext:"defaultTopicQueueNums,required"`
	QueueID               int32  `ext:"queueId,required"`
	SysFlag               int32  `ext:"sysFlag,required"`
	BornTimestamp         int64  `ext:"bornTimestamp,required"`
	Flag                  int32  `ext:"flag,required"`
	Properties            string `ext:"properties"`
	ReconsumeTimes        int32  `ext:"reconsumeTimes"`
	UnitMode              bool   `ext:"unitMode"`
	MaxReconsumeTimes     *int32 `ext:"maxReconsumeTimes"`
	Batch                 bool   `ext:"batch"`
	BrokerName            string `ext:"bname"`
}

type pullHeader struct {
	ConsumerGroup        string `ext:"consumerGroup,required"`
	Topic                string `ext:"topic,required"`
	QueueID              int32  `ext:"queueId,required"`
	QueueOffset          int64  `ext:"queueOffset,required"`
	MaxMsgNums           int32  `ext:"maxMsgNums,required"`
	SysFlag              int32  `ext:"sysFlag,required"`
	CommitOffset         int64  `ext:"commitOffset,required"`
	SuspendTimeoutMillis int64  `ext:"suspendTimeoutMillis,required"`
	Subscription         string `ext:"subscription"`
	SubVersion           int64  `ext:"subVersion,required"`
	ExpressionType       string `ext:"expressionType"`
	MaxMsgBytes          *int32 `ext:"maxMsgBytes"`
	RequestSource        int32  `ext:"requestSource"`
	ProxyForwardClientID string `ext:"proxyFrowardClientId"`
	BrokerName           string `ext:"bname"`
}

func orNil(v int32, has bool) *int32 {
	if !has {
		return nil
	}
	return &v
}

func (h *sendV2) from(v *protocol.SendView) {
	*h = sendV2{
		string(v.ProducerGroup), string(v.Topic), string(v.DefaultTopic), v.DefaultTopicQueueNums, v.QueueID, v.SysFlag,
		v.BornTimestamp, v.Flag, string(v.Properties), v.ReconsumeTimes, v.UnitMode, orNil(v.MaxReconsumeTimes, v.HasMaxReconsumeTimes), v.Batch, string(v.BrokerName),
	}
}

func (h *pullHeader) from(v *protocol.PullView) {
	*h = pullHeader{
		string(v.ConsumerGroup), string(v.Topic), v.QueueID, v.QueueOffset, v.MaxMsgNums, v.SysFlag, v.CommitOffset, v.SuspendTimeoutMillis,
		string(v.Subscription), v.SubVersion, string(v.ExpressionType), orNil(v.MaxMsgBytes, v.HasMaxMsgBytes), v.RequestSource, string(v.ProxyForwardClientID), string(v.BrokerName),
	}
}

// agree checks the hand-written codecs against the generic one.
func agree(t *testing.T, ext protocol.ExtFields) {
	t.Helper()
	var send protocol.SendView
	var pull protocol.PullView
	var v2, gotV2 sendV2
	var v1 sendV1
	var pulled, gotPulled pullHeader

	generic, hand := protocol.DecodeHeader(ext, &v2), protocol.DecodeSendV2(ext, &send)
	require.Equal(t, generic == nil, hand == nil, "%v, %v", generic, hand)
	if hand == nil {
		gotV2.from(&send)
		require.Equal(t, v2, gotV2)
	}
	generic, hand = protocol.DecodeHeader(ext, &v1), protocol.DecodeSendV1(ext, &send)
	require.Equal(t, generic == nil, hand == nil, "%v, %v", generic, hand)
	if hand == nil {
		gotV2.from(&send)
		require.Equal(t, sendV2(v1), gotV2)
	}
	generic, hand = protocol.DecodeHeader(ext, &pulled), protocol.DecodePull(ext, &pull)
	require.Equal(t, generic == nil, hand == nil, "%v, %v", generic, hand)
	if hand == nil {
		gotPulled.from(&pull)
		require.Equal(t, pulled, gotPulled)
	}
}

func TestHandCodecsAgreeWithTheGenericOneOnCapturedFrames(t *testing.T) {
	var sends, pulls int
	for _, frame := range captured(t) {
		c, err := decode(frame)
		require.NoError(t, err)
		if c.Response() {
			continue
		}
		agree(t, c.Ext)
		var send protocol.SendView
		var pull protocol.PullView
		switch c.Code {
		case 310, 320:
			require.NoError(t, protocol.DecodeSendV2(c.Ext, &send))
			sends++
		case 11:
			require.NoError(t, protocol.DecodePull(c.Ext, &pull))
			pulls++
		}
	}
	require.Positive(t, sends)
	require.Positive(t, pulls)
}

func TestHandCodecsNameMissingAndWrongFields(t *testing.T) {
	c, err := decode(sendFrame(protocol.JSON))
	require.NoError(t, err)
	for i := range 8 {
		ext := append(append(protocol.ExtFields{}, c.Ext[:i]...), c.Ext[i+1:]...)
		var v protocol.SendView
		require.ErrorContains(t, protocol.DecodeSendV2(ext, &v), "field "+string(c.Ext[i].Key)+" is missing")
	}
	var v protocol.SendView
	require.ErrorContains(t, protocol.DecodeSendV2(c.Ext.Add("e", "two"), &v), "field e is not of type int32")
	require.ErrorContains(t, protocol.DecodeSendV1(nil, &v), "producerGroup is missing")
	var p protocol.PullView
	require.ErrorContains(t, protocol.DecodePull(nil, &p), "consumerGroup is missing")
	require.ErrorContains(t, protocol.DecodePull(protocol.ExtFields(nil).Add("queueOffset", "-"), &p), "queueOffset is not of type int64")
}

func FuzzHandHeaderCodecs(f *testing.F) {
	for i, frame := range captured(f) {
		if i%20 == 0 {
			f.Add(frame[4:])
		}
	}
	f.Add(sendFrame(protocol.RocketMQ)[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var c protocol.Command
		if protocol.DecodeFrame(b, &c) == nil {
			agree(t, c.Ext)
		}
	})
}

func TestEveryTypedHeaderHasACodec(t *testing.T) {
	for _, rt := range protocol.RequestTypes() {
		require.NotPanics(t, func() {
			cmd := protocol.NewRequest(rt.Request, nil)
			require.NoError(t, protocol.DecodeHeader(cmd.Ext, rt.Request))
			protocol.AppendHeader(nil, rt.Response)
		}, "%T", rt.Request)
	}
}
