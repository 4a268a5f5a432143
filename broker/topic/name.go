package topic

import (
	"fmt"
	"slices"
	"strings"
)

// Names of topics that the broker makes and uses itself (RocketMQ TopicValidator, MixAll). Never rename.
const (
	Template         = "TBW102" // template of topics created by a send
	Schedule         = "SCHEDULE_TOPIC_XXXX"
	Benchmark        = "BenchmarkTest"
	Half             = "RMQ_SYS_TRANS_HALF_TOPIC"
	OpHalf           = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	CheckMaxTime     = "TRANS_CHECK_MAX_TIME_TOPIC"
	SelfTest         = "SELF_TEST_TOPIC"
	OffsetMoved      = "OFFSET_MOVED_EVENT"
	Checkpoint       = "CHECKPOINT_TOPIC"
	TraceDefault     = "RMQ_SYS_TRACE_TOPIC"
	WheelTimer       = "rmq_sys_wheel_timer"
	SystemPrefix     = "rmq_sys_"
	RetryPrefix      = "%RETRY%"
	DeadLetterPrefix = "%DLQ%"
)

// Lengths of names in bytes (RocketMQ Validators, HookUtils): topics of users, and retry and dead-letter topics.
const (
	NameBytesMax      = 127
	RetryNameBytesMax = 255
)

// Bits of Config.Perm (RocketMQ PermName).
const (
	PermInherit int32 = 1
	PermWrite   int32 = 2
	PermRead    int32 = 4
)

var (
	fixedSystem = []string{Template, Schedule, Benchmark, Half, TraceDefault, OpHalf, CheckMaxTime, SelfTest, OffsetMoved, Checkpoint}
	unsendable  = []string{Schedule, Half, OpHalf, CheckMaxTime, SelfTest, OffsetMoved}
)

// CheckName tells why a name cannot be a topic: only letters, digits and %|_- are allowed, 1 to 127 bytes, and up to 255
// for retry and dead-letter topics. It allocates only with an error.
func CheckName[T ~string | ~[]byte](name T) error {
	if len(name) == 0 {
		return fmt.Errorf("topic: name is blank")
	}
	if len(name) > RetryNameBytesMax || len(name) > NameBytesMax && !internal(name) {
		return fmt.Errorf("topic: name has %d bytes, at most %d are allowed", len(name), NameBytesMax)
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			return fmt.Errorf("topic: name %q contains illegal characters, allowing only %%|a-zA-Z0-9_-", string(name))
		}
	}
	return nil
}

func internal[T ~string | ~[]byte](name T) bool {
	return hasPrefix(name, RetryPrefix) || hasPrefix(name, DeadLetterPrefix)
}

func hasPrefix[T ~string | ~[]byte](name T, prefix string) bool {
	return len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix
}

func nameByte(c byte) bool {
	return c == '%' || c == '|' || c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// SendAllowed reports whether clients may send to a topic; those of the broker's own machinery are closed to them.
func SendAllowed[T ~string | ~[]byte](name T) bool {
	return !slices.Contains(unsendable, string(name))
}

// Retry and DeadLetter name the topics of a group.
func Retry(group string) string      { return RetryPrefix + group }
func DeadLetter(group string) string { return DeadLetterPrefix + group }

// Of a retry topic, its group; ok is false for other names.
func GroupOfRetry(name string) (group string, ok bool) { return strings.CutPrefix(name, RetryPrefix) }
