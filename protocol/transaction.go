package protocol

// CheckTransactionStateRequest is CheckTransactionStateRequestHeader, the header of CHECK_TRANSACTION_STATE.
type CheckTransactionStateRequest struct {
	Topic                string `ext:"topic"`
	TranStateTableOffset int64  `ext:"tranStateTableOffset,required"`
	CommitLogOffset      int64  `ext:"commitLogOffset,required"`
	MsgID                string `ext:"msgId"`
	TransactionID        string `ext:"transactionId"`
	OffsetMsgID          string `ext:"offsetMsgId"`
	RPC
}

// Code returns 39.
func (*CheckTransactionStateRequest) Code() RequestCode { return CodeCheckTransactionState }

// CheckTransactionStateResponse is CheckTransactionStateResponseHeader.
type CheckTransactionStateResponse struct {
	ProducerGroup        string `ext:"producerGroup,required"`
	TranStateTableOffset int64  `ext:"tranStateTableOffset,required"`
	CommitLogOffset      int64  `ext:"commitLogOffset,required"`
	CommitOrRollback     int32  `ext:"commitOrRollback,required"`
}

// EndTransactionRequest is EndTransactionRequestHeader, the header of END_TRANSACTION.
type EndTransactionRequest struct {
	Topic                string `ext:"topic"`
	ProducerGroup        string `ext:"producerGroup,required"`
	TranStateTableOffset int64  `ext:"tranStateTableOffset,required"`
	CommitLogOffset      int64  `ext:"commitLogOffset,required"`
	CommitOrRollback     int32  `ext:"commitOrRollback,required"`
	FromTransactionCheck *bool  `ext:"fromTransactionCheck"`
	MsgID                string `ext:"msgId,required"`
	TransactionID        string `ext:"transactionId"`
	RPC
}

// Code returns 37.
func (*EndTransactionRequest) Code() RequestCode { return CodeEndTransaction }

// ResumeCheckHalfMessageRequest is ResumeCheckHalfMessageRequestHeader, the header of RESUME_CHECK_HALF_MESSAGE.
type ResumeCheckHalfMessageRequest struct {
	Topic string `ext:"topic"`
	MsgID string `ext:"msgId"`
}

// Code returns 323.
func (*ResumeCheckHalfMessageRequest) Code() RequestCode { return CodeResumeCheckHalfMessage }
