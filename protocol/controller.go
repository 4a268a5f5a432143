package protocol

// NotifyBrokerRoleChangedRequest is NotifyBrokerRoleChangedRequestHeader, the header of NOTIFY_BROKER_ROLE_CHANGED.
type NotifyBrokerRoleChangedRequest struct {
	MasterAddress     string `ext:"masterAddress"`
	MasterEpoch       *int32 `ext:"masterEpoch"`
	SyncStateSetEpoch *int32 `ext:"syncStateSetEpoch"`
	MasterBrokerID    *int64 `ext:"masterBrokerId"`
}

// Code returns 1008.
func (*NotifyBrokerRoleChangedRequest) Code() RequestCode { return CodeNotifyBrokerRoleChanged }

// AlterSyncStateSetRequest is AlterSyncStateSetRequestHeader, the header of CONTROLLER_ALTER_SYNC_STATE_SET.
type AlterSyncStateSetRequest struct {
	BrokerName     string `ext:"brokerName"`
	MasterBrokerID *int64 `ext:"masterBrokerId"`
	MasterEpoch    *int32 `ext:"masterEpoch"`
	InvokeTime     int64  `ext:"invokeTime"`
}

// Code returns 1001.
func (*AlterSyncStateSetRequest) Code() RequestCode { return CodeControllerAlterSyncStateSet }

// AlterSyncStateSetResponse is AlterSyncStateSetResponseHeader.
type AlterSyncStateSetResponse struct {
	NewSyncStateSetEpoch int32 `ext:"newSyncStateSetEpoch"`
}

// ElectMasterRequest is ElectMasterRequestHeader, the header of CONTROLLER_ELECT_MASTER.
type ElectMasterRequest struct {
	ClusterName    string `ext:"clusterName,required"`
	BrokerName     string `ext:"brokerName,required"`
	BrokerID       int64  `ext:"brokerId,required"`
	DesignateElect bool   `ext:"designateElect,required"`
	InvokeTime     *int64 `ext:"invokeTime"`
}

// Code returns 1002.
func (*ElectMasterRequest) Code() RequestCode { return CodeControllerElectMaster }

// ElectMasterResponse is ElectMasterResponseHeader.
type ElectMasterResponse struct {
	MasterBrokerID    *int64 `ext:"masterBrokerId"`
	MasterAddress     string `ext:"masterAddress"`
	MasterEpoch       *int32 `ext:"masterEpoch"`
	SyncStateSetEpoch *int32 `ext:"syncStateSetEpoch"`
}

// GetMetaDataResponse is GetMetaDataResponseHeader.
type GetMetaDataResponse struct {
	Group                   string `ext:"group"`
	ControllerLeaderID      string `ext:"controllerLeaderId"`
	ControllerLeaderAddress string `ext:"controllerLeaderAddress"`
	IsLeader                bool   `ext:"isLeader"`
	Peers                   string `ext:"peers"`
}

// GetReplicaInfoRequest is GetReplicaInfoRequestHeader, the header of CONTROLLER_GET_REPLICA_INFO.
type GetReplicaInfoRequest struct {
	BrokerName string `ext:"brokerName"`
}

// Code returns 1004.
func (*GetReplicaInfoRequest) Code() RequestCode { return CodeControllerGetReplicaInfo }

// GetReplicaInfoResponse is GetReplicaInfoResponseHeader.
type GetReplicaInfoResponse struct {
	MasterBrokerID *int64 `ext:"masterBrokerId"`
	MasterAddress  string `ext:"masterAddress"`
	MasterEpoch    *int32 `ext:"masterEpoch"`
}

// CleanControllerBrokerDataRequest is CleanControllerBrokerDataRequestHeader, the header of CLEAN_BROKER_DATA.
type CleanControllerBrokerDataRequest struct {
	ClusterName                string `ext:"clusterName"`
	BrokerName                 string `ext:"brokerName,required"`
	BrokerControllerIDsToClean string `ext:"brokerControllerIdsToClean"`
	IsCleanLivingBroker        bool   `ext:"isCleanLivingBroker"`
	InvokeTime                 int64  `ext:"invokeTime"`
}

// Code returns 1011.
func (*CleanControllerBrokerDataRequest) Code() RequestCode { return CodeCleanBrokerData }

// ApplyBrokerIDRequest is ApplyBrokerIdRequestHeader, the header of CONTROLLER_APPLY_BROKER_ID.
type ApplyBrokerIDRequest struct {
	ClusterName       string `ext:"clusterName"`
	BrokerName        string `ext:"brokerName"`
	AppliedBrokerID   *int64 `ext:"appliedBrokerId"`
	RegisterCheckCode string `ext:"registerCheckCode"`
}

// Code returns 1013.
func (*ApplyBrokerIDRequest) Code() RequestCode { return CodeControllerApplyBrokerID }

// ApplyBrokerIDResponse is ApplyBrokerIdResponseHeader.
type ApplyBrokerIDResponse struct {
	ClusterName string `ext:"clusterName"`
	BrokerName  string `ext:"brokerName"`
}

// GetNextBrokerIDRequest is GetNextBrokerIdRequestHeader, the header of CONTROLLER_GET_NEXT_BROKER_ID.
type GetNextBrokerIDRequest struct {
	ClusterName string `ext:"clusterName"`
	BrokerName  string `ext:"brokerName"`
}

// Code returns 1012.
func (*GetNextBrokerIDRequest) Code() RequestCode { return CodeControllerGetNextBrokerID }

// GetNextBrokerIDResponse is GetNextBrokerIdResponseHeader.
type GetNextBrokerIDResponse struct {
	ClusterName  string `ext:"clusterName"`
	BrokerName   string `ext:"brokerName"`
	NextBrokerID *int64 `ext:"nextBrokerId"`
}

// RegisterBrokerToControllerRequest is RegisterBrokerToControllerRequestHeader, the header of CONTROLLER_REGISTER_BROKER.
type RegisterBrokerToControllerRequest struct {
	ClusterName   string `ext:"clusterName"`
	BrokerName    string `ext:"brokerName"`
	BrokerID      *int64 `ext:"brokerId"`
	BrokerAddress string `ext:"brokerAddress"`
	InvokeTime    int64  `ext:"invokeTime"`
}

// Code returns 1003.
func (*RegisterBrokerToControllerRequest) Code() RequestCode { return CodeControllerRegisterBroker }

// RegisterBrokerToControllerResponse is RegisterBrokerToControllerResponseHeader.
type RegisterBrokerToControllerResponse struct {
	ClusterName       string `ext:"clusterName"`
	BrokerName        string `ext:"brokerName"`
	MasterBrokerID    *int64 `ext:"masterBrokerId"`
	MasterAddress     string `ext:"masterAddress"`
	MasterEpoch       *int32 `ext:"masterEpoch"`
	SyncStateSetEpoch *int32 `ext:"syncStateSetEpoch"`
}

// ControllerGetMetadataInfoRequest is CONTROLLER_GET_METADATA_INFO, which has no header fields.
type ControllerGetMetadataInfoRequest struct{}

// Code returns 1005.
func (*ControllerGetMetadataInfoRequest) Code() RequestCode { return CodeControllerGetMetadataInfo }

// ControllerGetSyncStateDataRequest is CONTROLLER_GET_SYNC_STATE_DATA, which has no header fields.
type ControllerGetSyncStateDataRequest struct{}

// Code returns 1006.
func (*ControllerGetSyncStateDataRequest) Code() RequestCode { return CodeControllerGetSyncStateData }

// UpdateControllerConfigRequest is UPDATE_CONTROLLER_CONFIG, which has no header fields.
type UpdateControllerConfigRequest struct{}

// Code returns 1009.
func (*UpdateControllerConfigRequest) Code() RequestCode { return CodeUpdateControllerConfig }

// GetControllerConfigRequest is GET_CONTROLLER_CONFIG, which has no header fields.
type GetControllerConfigRequest struct{}

// Code returns 1010.
func (*GetControllerConfigRequest) Code() RequestCode { return CodeGetControllerConfig }
