package message

// Properties is the encoded property block of a message: key 0x01 value 0x02, repeated (RocketMQ MessageDecoder,
// PROTOCOL §4.3). Lookups work on the encoded form, so that nothing is decoded which nobody asks for.
type Properties []byte

// Lookup returns the value of key as a slice of p, and whether the key is there. It does not allocate.
func (p Properties) Lookup(key string) ([]byte, bool) { panic("unbuilt") }

// Get returns the value of key, or "" when it is absent.
func (p Properties) Get(key string) string { panic("unbuilt") }

// Has reports whether key is present.
func (p Properties) Has(key string) bool { panic("unbuilt") }

// Set returns p with key set to value: a present value is replaced, an absent one appended. p may be overwritten.
func (p Properties) Set(key, value string) Properties { panic("unbuilt") }

// Without returns p without the keys. p may be overwritten.
func (p Properties) Without(keys ...string) Properties { panic("unbuilt") }

// All calls yield for each pair in order.
func (p Properties) All(yield func(key, value []byte) bool) { panic("unbuilt") }

// ParseProperties returns the pairs as a map; MakeProperties is its inverse (sorted by key).
func ParseProperties(p Properties) map[string]string { panic("unbuilt") }

// MakeProperties encodes pairs, sorted by key.
func MakeProperties(pairs map[string]string) Properties { panic("unbuilt") }

// Names of properties (RocketMQ MessageConst).
const (
	Keys                 = "KEYS"
	Tags                 = "TAGS"
	WaitStoreMsgOK       = "WAIT"
	DelayTimeLevel       = "DELAY"
	RetryTopic           = "RETRY_TOPIC"
	RealTopic            = "REAL_TOPIC"
	RealQueueID          = "REAL_QID"
	TransactionPrepared  = "TRAN_MSG"
	ProducerGroup        = "PGROUP"
	OriginMessageID      = "ORIGIN_MESSAGE_ID"
	MsgRegion            = "MSG_REGION"
	TraceSwitch          = "TRACE_ON"
	UniqueKey            = "UNIQ_KEY"
	Cluster              = "CLUSTER"
	TransactionID        = "__transactionId__"
	TransactionCheckTime = "TRANSACTION_CHECK_TIMES"
	CheckImmunityTime    = "CHECK_IMMUNITY_TIME_IN_SECONDS"
	PreparedQueueOffset  = "TRAN_PREPARED_QUEUE_OFFSET"
	CorrelationID        = "CORRELATION_ID"
	ReplyToClient        = "REPLY_TO_CLIENT"
	TTL                  = "TTL"
	MessageType          = "MSG_TYPE"
	PushReplyTime        = "PUSH_REPLY_TIME"
	PopCheckpoint        = "POP_CK"
	InnerNum             = "INNER_NUM"
	InnerBase            = "INNER_BASE"
)
