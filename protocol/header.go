package protocol

// Typed headers are structs whose fields carry a tag `ext:"wireName"` or `ext:"wireName,required"`. Field types: string,
// bool, int32, int64, and pointers to them for fields whose absence matters. Embedded structs are flattened.

// DecodeHeader fills a typed header (a pointer to struct) from ext fields and copies what it keeps. A missing required
// field or a value of the wrong type is an *Error that names the field.
func DecodeHeader(ext ExtFields, into any) error { panic("unbuilt") }

// AppendHeader appends the fields of a typed header (struct or pointer) to ext; nil pointers and empty optional strings are left out.
func AppendHeader(ext ExtFields, from any) ExtFields { panic("unbuilt") }

// NewRequest makes a request command from a typed header; the caller's client assigns Opaque.
func NewRequest(h Request, body []byte) *Command { panic("unbuilt") }
