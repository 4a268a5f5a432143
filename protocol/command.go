// Package protocol is the remoting contract: request and response codes, typed headers and bodies, and the frame codec.
// It holds no sockets and no server behaviour. Numbers come from RocketMQ's RequestCode and ResponseCode.
package protocol

import "slices"

// RequestCode identifies a remoting request on the wire (RocketMQ RequestCode). Never renumber.
type RequestCode int32

// ResponseCode is the outcome of a request (RocketMQ ResponseCode, RemotingSysResponseCode). Never renumber.
type ResponseCode int32

// Language is the sender's language code (RocketMQ LanguageCode).
type Language uint8

// LanguageUnknown is what an unlisted name in a JSON header decodes to; it is left out when encoded, as Java does.
const LanguageUnknown Language = 255

// Serialization is how a frame's header is encoded.
type Serialization uint8

// The two header serializations.
const (
	JSON     Serialization = 0
	RocketMQ Serialization = 1
)

// Flag bits of a command.
const (
	FlagResponse int32 = 1
	FlagOneway   int32 = 2
)

// ServerVersion is the MQVersion ordinal this product announces (V5_3_3, whose behaviour it follows).
const ServerVersion = 479

// Command is one remoting frame. A command read from a connection borrows the frame buffer: Ext values, Remark and Body
// are valid until its handler has returned or its buffer is released (see remoting.Exchange); DecodeHeader copies.
type Command struct {
	Code          int32 // a RequestCode or, with FlagResponse, a ResponseCode
	Language      Language
	Version       int32
	Opaque        int32
	Flag          int32
	Serialization Serialization
	Remark        []byte
	Ext           ExtFields
	Body          []byte

	shape shape
}

// shape remembers how a decoded JSON header differed from what a Java peer writes by default, so that it encodes to the
// same bytes again. Zero is the default.
type shape uint8

const (
	emptyExtFields  shape = 1 << iota // extFields was present and empty
	noSerializeType                   // serializeTypeCurrentRPC was absent (Go client)
)

// Oneway reports whether the sender expects no answer.
func (c *Command) Oneway() bool { return c.Flag&FlagOneway != 0 }

// Response reports whether the command answers another one.
func (c *Command) Response() bool { return c.Flag&FlagResponse != 0 }

// ExtField is one header field. Its slices alias the frame they were read from.
type ExtField struct{ Key, Value []byte }

// ExtFields are header fields in the order read or added, so that decode then encode is byte-equal.
type ExtFields []ExtField

// Lookup returns the value of key without copying. Of several fields with one key the last counts, as in a Java map.
func (e ExtFields) Lookup(key string) ([]byte, bool) {
	for _, f := range slices.Backward(e) {
		if string(f.Key) == key {
			return f.Value, true
		}
	}
	return nil, false
}

// Get returns a copy of the value of key, or "".
func (e ExtFields) Get(key string) string {
	v, _ := e.Lookup(key)
	return string(v)
}

// Add appends a field; it does not look for an earlier one of the same key.
func (e ExtFields) Add(key, value string) ExtFields {
	return append(e, ExtField{Key: []byte(key), Value: []byte(value)})
}

// Request is implemented by the pointer of every typed request header.
type Request interface{ Code() RequestCode }
