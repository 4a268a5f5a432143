package message

// SysFlag is the system flag of a message (RocketMQ MessageSysFlag, PROTOCOL §4.5).
type SysFlag int32

// Bits of SysFlag. The two transaction bits are one field: compare with SysFlag.Transaction.
const (
	FlagCompressed          SysFlag = 0x01
	FlagMultiTags           SysFlag = 0x02
	TransactionNone         SysFlag = 0x00
	TransactionPreparedFlag SysFlag = 0x04
	TransactionCommit       SysFlag = 0x08
	TransactionRollback     SysFlag = 0x0C
	FlagBornHostV6          SysFlag = 0x10
	FlagStoreHostV6         SysFlag = 0x20
	FlagNeedUnwrap          SysFlag = 0x40
	FlagInnerBatch          SysFlag = 0x80
)

// Transaction returns the transaction type field.
func (f SysFlag) Transaction() SysFlag { return f & TransactionRollback }
