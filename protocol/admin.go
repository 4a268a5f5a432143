package protocol

// AddBrokerRequest is AddBrokerRequestHeader, the header of ADD_BROKER.
type AddBrokerRequest struct {
	ConfigPath string `ext:"configPath"`
}

// Code returns 902.
func (*AddBrokerRequest) Code() RequestCode { return CodeAddBroker }

// GetBrokerConfigResponse is GetBrokerConfigResponseHeader.
type GetBrokerConfigResponse struct {
	Version string `ext:"version,required"`
}

// RemoveBrokerRequest is RemoveBrokerRequestHeader, the header of REMOVE_BROKER.
type RemoveBrokerRequest struct {
	BrokerName        string `ext:"brokerName,required"`
	BrokerClusterName string `ext:"brokerClusterName,required"`
	BrokerID          int64  `ext:"brokerId,required"`
}

// Code returns 903.
func (*RemoveBrokerRequest) Code() RequestCode { return CodeRemoveBroker }

// ViewBrokerStatsDataRequest is ViewBrokerStatsDataRequestHeader, the header of VIEW_BROKER_STATS_DATA.
type ViewBrokerStatsDataRequest struct {
	StatsName string `ext:"statsName,required"`
	StatsKey  string `ext:"statsKey,required"`
}

// Code returns 315.
func (*ViewBrokerStatsDataRequest) Code() RequestCode { return CodeViewBrokerStatsData }

// UpdateBrokerConfigRequest is UPDATE_BROKER_CONFIG, which has no header fields.
type UpdateBrokerConfigRequest struct{}

// Code returns 25.
func (*UpdateBrokerConfigRequest) Code() RequestCode { return CodeUpdateBrokerConfig }

// GetBrokerConfigRequest is GET_BROKER_CONFIG, which has no header fields.
type GetBrokerConfigRequest struct{}

// Code returns 26.
func (*GetBrokerConfigRequest) Code() RequestCode { return CodeGetBrokerConfig }

// GetBrokerRuntimeInfoRequest is GET_BROKER_RUNTIME_INFO, which has no header fields.
type GetBrokerRuntimeInfoRequest struct{}

// Code returns 28.
func (*GetBrokerRuntimeInfoRequest) Code() RequestCode { return CodeGetBrokerRuntimeInfo }

// CleanExpiredConsumeQueueRequest is CLEAN_EXPIRED_CONSUMEQUEUE, which has no header fields.
type CleanExpiredConsumeQueueRequest struct{}

// Code returns 306.
func (*CleanExpiredConsumeQueueRequest) Code() RequestCode { return CodeCleanExpiredConsumeQueue }

// DeleteExpiredCommitLogRequest is DELETE_EXPIRED_COMMITLOG, which has no header fields.
type DeleteExpiredCommitLogRequest struct{}

// Code returns 329.
func (*DeleteExpiredCommitLogRequest) Code() RequestCode { return CodeDeleteExpiredCommitLog }
