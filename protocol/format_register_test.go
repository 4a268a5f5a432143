package protocol_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

func deflate(tb testing.TB, plain []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, err := w.Write(plain)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return out.Bytes()
}

func piece(dst []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(text))), text...)
}

func TestCompressedRegisterBodyHasTheProductsLayout(t *testing.T) {
	plain := piece(nil, `{"counter":1,"stateVersion":3,"timestamp":1796008289571}`)
	plain = binary.BigEndian.AppendUint32(plain, 2)
	plain = piece(plain, `TopicA 8 8 6 SINGLE_TAG {"message.type":"NORMAL"}`)
	plain = piece(plain, `Old 1 2 4 MULTI_TAG`)
	plain = piece(plain, `["f:1"]`)
	old := deflate(t, plain)
	plain = binary.BigEndian.AppendUint32(plain, 1)
	mapping := `{"bname":"b","currIdMap":{0:1},"topic":"S"}`
	plain = piece(plain, mapping)

	got, err := protocol.DecodeRegisterBroker(deflate(t, plain), true, protocol.ServerVersion)
	require.NoError(t, err)
	want := &protocol.RegisterBrokerBody{
		TopicConfigSerializeWrapper: protocol.TopicConfigSerializeWrapper{
			DataVersion: protocol.DataVersion{Counter: 1, StateVersion: 3, Timestamp: 1796008289571},
			TopicConfigTable: map[string]protocol.TopicConfig{
				"TopicA": {TopicName: "TopicA", ReadQueueNums: 8, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: map[string]string{"message.type": "NORMAL"}},
				"Old":    {TopicName: "Old", ReadQueueNums: 1, WriteQueueNums: 2, Perm: 4, TopicFilterType: "MULTI_TAG"},
			},
			TopicQueueMappingInfoMap: map[string]fastjson.Raw{"S": fastjson.Raw(mapping)},
		},
		FilterServerList: []string{"f:1"},
	}
	require.Equal(t, want, got)

	again, err := protocol.EncodeRegisterBroker(got, true)
	require.NoError(t, err)
	back, err := protocol.DecodeRegisterBroker(again, true, protocol.ServerVersion)
	require.NoError(t, err)
	want.TopicConfigSerializeWrapper.TopicConfigTable["Old"] = func() protocol.TopicConfig {
		o := want.TopicConfigSerializeWrapper.TopicConfigTable["Old"]
		o.Attributes = map[string]string{}
		return o
	}()
	want.TopicConfigSerializeWrapper.TopicQueueMappingInfoMap["S"] = fastjson.Raw(`{"bname":"b","currIdMap":{"0":1},"topic":"S"}`)
	require.Equal(t, want, back)

	got, err = protocol.DecodeRegisterBroker(old, true, 407)
	require.NoError(t, err)
	require.Len(t, got.TopicConfigSerializeWrapper.TopicConfigTable, 2)
}

func TestRegisterBodiesThatLieAreRefused(t *testing.T) {
	count := func(n uint32) []byte { return binary.BigEndian.AppendUint32(piece(nil, "{}"), n) }
	for name, body := range map[string][]byte{
		"not zlib":       []byte("plain"),
		"empty":          deflate(t, nil),
		"length beyond":  deflate(t, []byte{0x7f, 0xff, 0xff, 0xff}),
		"negative count": deflate(t, count(0xffffffff)),
		"count beyond":   deflate(t, count(1<<30)),
		"bad topic":      deflate(t, piece(count(1), "T 8")),
		"bad number":     deflate(t, piece(count(1), "T 8 x 6 SINGLE_TAG")),
		"bad attributes": deflate(t, piece(count(1), "T 8 8 6 SINGLE_TAG {")),
		"bad servers":    deflate(t, piece(count(0), "{")),
		"bomb":           deflate(t, make([]byte, protocol.RegisterInflatedBytesMax+1)),
	} {
		_, err := protocol.DecodeRegisterBroker(body, true, protocol.ServerVersion)
		require.Error(t, err, name)
	}
	_, err := protocol.DecodeRegisterBroker([]byte(`{"topicConfigSerializeWrapper":1}`), false, protocol.ServerVersion)
	require.Error(t, err)
}

func TestRegisterBodyCRCIsOfTheBodyAsSent(t *testing.T) {
	require.Equal(t, int32(907060870), protocol.RegisterBodyCRC([]byte("hello")))
}

func FuzzDecodeRegisterBroker(f *testing.F) {
	f.Add([]byte(`{"topicConfigSerializeWrapper":{"dataVersion":{"counter":1}}}`), false)
	f.Add(piece(binary.BigEndian.AppendUint32(piece(nil, `{"counter":1}`), 0), `[]`), true)
	f.Fuzz(func(t *testing.T, body []byte, compressed bool) {
		if compressed {
			body = deflate(t, body)
		}
		b, err := protocol.DecodeRegisterBroker(body, compressed, protocol.ServerVersion)
		if err != nil {
			return
		}
		_, err = protocol.EncodeRegisterBroker(b, compressed)
		require.NoError(t, err)
	})
}
