package protocol

// Limits of a frame (RocketMQ NettyDecoder; the header cap is ours).
const (
	FrameBytesMax  = 16 << 20
	HeaderBytesMax = 64 << 10
)

// DecodeFrame decodes one frame body, that is everything behind the 4-byte total length. The command borrows b and reuses
// c.Ext. Bounds are checked before anything is allocated.
func DecodeFrame(b []byte, c *Command) error { panic("unbuilt") }

// AppendFrame appends the complete frame of c, total length included, to dst.
func AppendFrame(dst []byte, c *Command) []byte { panic("unbuilt") }
