package protocol

// ExchangeHAInfoRequest is ExchangeHAInfoRequestHeader, the header of EXCHANGE_BROKER_HA_INFO.
type ExchangeHAInfoRequest struct {
	MasterHAAddress   string `ext:"masterHaAddress"`
	MasterFlushOffset *int64 `ext:"masterFlushOffset"`
	MasterAddress     string `ext:"masterAddress"`
}

// Code returns 906.
func (*ExchangeHAInfoRequest) Code() RequestCode { return CodeExchangeBrokerHAInfo }

// ExchangeHAInfoResponse is ExchangeHAInfoResponseHeader.
type ExchangeHAInfoResponse struct {
	MasterHAAddress   string `ext:"masterHaAddress"`
	MasterFlushOffset *int64 `ext:"masterFlushOffset"`
	MasterAddress     string `ext:"masterAddress"`
}

// NotifyMinBrokerIDChangeRequest is NotifyMinBrokerIdChangeRequestHeader, the header of NOTIFY_MIN_BROKER_ID_CHANGE.
type NotifyMinBrokerIDChangeRequest struct {
	MinBrokerID       *int64 `ext:"minBrokerId"`
	BrokerName        string `ext:"brokerName"`
	MinBrokerAddr     string `ext:"minBrokerAddr"`
	OfflineBrokerAddr string `ext:"offlineBrokerAddr"`
	HABrokerAddr      string `ext:"haBrokerAddr"`
}

// Code returns 905.
func (*NotifyMinBrokerIDChangeRequest) Code() RequestCode { return CodeNotifyMinBrokerIDChange }

// ResetMasterFlushOffsetRequest is ResetMasterFlushOffsetHeader, the header of RESET_MASTER_FLUSH_OFFSET.
type ResetMasterFlushOffsetRequest struct {
	MasterFlushOffset int64 `ext:"masterFlushOffset,required"`
}

// Code returns 908.
func (*ResetMasterFlushOffsetRequest) Code() RequestCode { return CodeResetMasterFlushOffset }

// GetBrokerHAStatusRequest is GET_BROKER_HA_STATUS, which has no header fields.
type GetBrokerHAStatusRequest struct{}

// Code returns 907.
func (*GetBrokerHAStatusRequest) Code() RequestCode { return CodeGetBrokerHAStatus }

// GetBrokerEpochCacheRequest is GET_BROKER_EPOCH_CACHE, which has no header fields.
type GetBrokerEpochCacheRequest struct{}

// Code returns 1007.
func (*GetBrokerEpochCacheRequest) Code() RequestCode { return CodeGetBrokerEpochCache }
