package protocol

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/fastjson"
)

// The compressed body of REGISTER_BROKER (RegisterBrokerBody.encode), one zlib stream of
//
//	i32 length, data version as JSON
//	i32 topics, of each: i32 length, "topic readQueues writeQueues perm filterType {attributes as JSON}"
//	i32 length, filter servers as a JSON array
//	i32 mappings, of each: i32 length, JSON          (senders since 5.0.0)
//
// The form loses order and topicSysFlag of a topic.

// Bounds of a REGISTER_BROKER body, checked before anything is built of it.
const (
	RegisterInflatedBytesMax = 64 << 20
	RegisterTopicsMax        = 200_000
)

// RegisterBodyCRC is the checksum of a REGISTER_BROKER body as sent; in a header, 0 means unchecked.
func RegisterBodyCRC(body []byte) int32 { return int32(crc32.ChecksumIEEE(body) & 0x7FFFFFFF) }

// EncodeRegisterBroker encodes a body for a NameServer that knows RocketMQ 5.
func EncodeRegisterBroker(b *RegisterBrokerBody, compressed bool) ([]byte, error) {
	if !compressed {
		return fastjson.Marshal(b)
	}
	version, err := fastjson.Marshal(b.TopicConfigSerializeWrapper.DataVersion)
	if err != nil {
		return nil, err
	}
	plain := appendPiece(nil, version)
	topics := b.TopicConfigSerializeWrapper.TopicConfigTable
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(topics)))
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		attributes := t.Attributes
		if attributes == nil {
			attributes = map[string]string{}
		}
		text, err := fastjson.Marshal(attributes)
		if err != nil {
			return nil, err
		}
		plain = appendPiece(plain, fmt.Appendf(nil, "%s %d %d %d %s %s",
			name, t.ReadQueueNums, t.WriteQueueNums, t.Perm, t.TopicFilterType, text))
	}
	servers, err := fastjson.Marshal(append([]string{}, b.FilterServerList...))
	if err != nil {
		return nil, err
	}
	plain = appendPiece(plain, servers)
	mappings := b.TopicConfigSerializeWrapper.TopicQueueMappingInfoMap
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(mappings)))
	for _, name := range slices.Sorted(maps.Keys(mappings)) {
		text, err := fastjson.Marshal(mappings[name])
		if err != nil {
			return nil, err
		}
		plain = appendPiece(plain, text)
	}
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("compress register body: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress register body: %w", err)
	}
	return out.Bytes(), nil
}

func appendPiece(dst, piece []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(piece))), piece...)
}

// DecodeRegisterBroker decodes a body sent by a broker of the given version. It does not alias data.
func DecodeRegisterBroker(data []byte, compressed bool, version int32) (*RegisterBrokerBody, error) {
	b := &RegisterBrokerBody{}
	if !compressed {
		if err := fastjson.Unmarshal(data, b); err != nil {
			return nil, fmt.Errorf("register body: %w", err)
		}
		if n := len(b.TopicConfigSerializeWrapper.TopicConfigTable); n > RegisterTopicsMax {
			return nil, fmt.Errorf("register body: %d topics are more than %d", n, RegisterTopicsMax)
		}
		return b, nil
	}
	r, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("register body: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, RegisterInflatedBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("register body: %w", err)
	}
	if len(plain) > RegisterInflatedBytesMax {
		return nil, fmt.Errorf("register body: inflates beyond %d bytes", RegisterInflatedBytesMax)
	}
	if err := b.decodePieces(plain, version); err != nil {
		return nil, fmt.Errorf("register body: %w", err)
	}
	return b, nil
}

// pieces is a cursor over counts and length-prefixed pieces; its first error sticks.
type pieces struct {
	rest []byte
	err  error
}

// count takes a number of things that have at least 4 bytes each, or the length of a piece.
func (p *pieces) count(unit int) int {
	if p.err == nil && len(p.rest) < 4 {
		p.err = io.ErrUnexpectedEOF
	}
	if p.err != nil {
		return 0
	}
	n := int(int32(binary.BigEndian.Uint32(p.rest)))
	p.rest = p.rest[4:]
	if n < 0 || n > len(p.rest)/unit {
		p.err = fmt.Errorf("%d is beyond the %d bytes left", n, len(p.rest))
		return 0
	}
	return n
}

func (p *pieces) piece() []byte {
	n := p.count(1)
	piece := p.rest[:n]
	p.rest = p.rest[n:]
	return piece
}

func (p *pieces) json(into any) {
	if text := p.piece(); p.err == nil {
		p.err = fastjson.Unmarshal(text, into)
	}
}

func (b *RegisterBrokerBody) decodePieces(plain []byte, version int32) error {
	p := &pieces{rest: plain}
	w := &b.TopicConfigSerializeWrapper
	p.json(&w.DataVersion)
	topics := p.count(4)
	if topics > RegisterTopicsMax {
		return fmt.Errorf("%d topics are more than %d", topics, RegisterTopicsMax)
	}
	w.TopicConfigTable = make(map[string]TopicConfig, topics)
	for range topics {
		text := p.piece()
		if p.err != nil {
			return p.err
		}
		t, err := parseTopic(string(text))
		if err != nil {
			return err
		}
		w.TopicConfigTable[t.TopicName] = t
	}
	p.json(&b.FilterServerList)
	if version < Version5_0_0 || p.err != nil || len(p.rest) == 0 {
		return p.err
	}
	mappings := p.count(4)
	w.TopicQueueMappingInfoMap = make(map[string]fastjson.Raw, mappings)
	for range mappings {
		text := p.piece()
		if p.err != nil {
			return p.err
		}
		var of struct {
			Topic string `json:"topic"`
		}
		if err := fastjson.Unmarshal(text, &of); err != nil {
			return err
		}
		w.TopicQueueMappingInfoMap[of.Topic] = bytes.Clone(text)
	}
	return p.err
}

// parseTopic reads the text form of a topic (TopicConfig.decode); attributes are missing before 5.0.0.
func parseTopic(text string) (TopicConfig, error) {
	f := strings.SplitN(text, " ", 6)
	if len(f) < 5 {
		return TopicConfig{}, fmt.Errorf("topic %.80q has %d parts", text, len(f))
	}
	t := TopicConfig{TopicName: f[0], TopicFilterType: f[4]}
	for i, into := range []*int32{&t.ReadQueueNums, &t.WriteQueueNums, &t.Perm} {
		n, err := strconv.ParseInt(f[i+1], 10, 32)
		if err != nil {
			return TopicConfig{}, fmt.Errorf("topic %.80q: %w", text, err)
		}
		*into = int32(n)
	}
	if len(f) == 6 && f[5] != "" {
		if err := fastjson.Unmarshal([]byte(f[5]), &t.Attributes); err != nil {
			return TopicConfig{}, fmt.Errorf("topic %.80q: %w", text, err)
		}
	}
	return t, nil
}
