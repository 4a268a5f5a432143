package protocol

// HARuntimeInfo answers GET_BROKER_HA_STATUS (HARuntimeInfo).
type HARuntimeInfo struct {
	Master                   bool                      `json:"master"`
	MasterCommitLogMaxOffset int64                     `json:"masterCommitLogMaxOffset"`
	InSyncSlaveNums          int32                     `json:"inSyncSlaveNums"`
	HAConnectionInfo         []HAConnectionRuntimeInfo `json:"haConnectionInfo"`
	HAClientRuntimeInfo      HAClientRuntimeInfo       `json:"haClientRuntimeInfo"`
}

// HAConnectionRuntimeInfo is the master's view of a replica (HARuntimeInfo.HAConnectionRuntimeInfo).
type HAConnectionRuntimeInfo struct {
	Addr                    string `json:"addr,omitempty"`
	SlaveAckOffset          int64  `json:"slaveAckOffset"`
	Diff                    int64  `json:"diff"`
	InSync                  bool   `json:"inSync"`
	TransferredByteInSecond int64  `json:"transferredByteInSecond"`
	TransferFromWhere       int64  `json:"transferFromWhere"`
}

// HAClientRuntimeInfo is a replica's view of its master (HARuntimeInfo.HAClientRuntimeInfo); times in ms.
type HAClientRuntimeInfo struct {
	MasterAddr              string `json:"masterAddr,omitempty"`
	TransferredByteInSecond int64  `json:"transferredByteInSecond"`
	MaxOffset               int64  `json:"maxOffset"`
	LastReadTimestamp       int64  `json:"lastReadTimestamp"`
	LastWriteTimestamp      int64  `json:"lastWriteTimestamp"`
	MasterFlushOffset       int64  `json:"masterFlushOffset"`
}

// EpochEntry is one master epoch of a log, EndOffset exclusive (EpochEntry).
type EpochEntry struct {
	Epoch       int32 `json:"epoch"`
	StartOffset int64 `json:"startOffset"`
	EndOffset   int64 `json:"endOffset"`
}

// EpochEntryCache answers GET_BROKER_EPOCH_CACHE (EpochEntryCache).
type EpochEntryCache struct {
	ClusterName string       `json:"clusterName"`
	BrokerName  string       `json:"brokerName"`
	BrokerID    int64        `json:"brokerId"`
	EpochList   []EpochEntry `json:"epochList"`
	MaxOffset   int64        `json:"maxOffset"`
}

// SyncStateSet is a set of controller broker ids with its epoch (SyncStateSet).
type SyncStateSet struct {
	SyncStateSet      []int64 `json:"syncStateSet"`
	SyncStateSetEpoch int32   `json:"syncStateSetEpoch"`
}

// ElectMasterResponseBody answers CONTROLLER_ELECT_MASTER; its addresses are keyed by controller broker id (ElectMasterResponseBody).
type ElectMasterResponseBody struct {
	BrokerMemberGroup *BrokerMemberGroup `json:"brokerMemberGroup"`
	SyncStateSet      []int64            `json:"syncStateSet"`
}

// BrokerReplicasInfo answers CONTROLLER_GET_SYNC_STATE_DATA by broker name (BrokerReplicasInfo).
type BrokerReplicasInfo struct {
	ReplicasInfoTable map[string]ReplicasInfo `json:"replicasInfoTable"`
}

// ReplicasInfo is the state of one broker group (BrokerReplicasInfo.ReplicasInfo).
type ReplicasInfo struct {
	MasterBrokerID    *int64            `json:"masterBrokerId"`
	MasterAddress     string            `json:"masterAddress,omitempty"`
	MasterEpoch       *int32            `json:"masterEpoch"`
	SyncStateSetEpoch *int32            `json:"syncStateSetEpoch"`
	InSyncReplicas    []ReplicaIdentity `json:"inSyncReplicas"`
	NotInSyncReplicas []ReplicaIdentity `json:"notInSyncReplicas"`
}

// ReplicaIdentity is one member of a broker group (BrokerReplicasInfo.ReplicaIdentity).
type ReplicaIdentity struct {
	BrokerName    string `json:"brokerName"`
	BrokerID      int64  `json:"brokerId"`
	BrokerAddress string `json:"brokerAddress"`
	Alive         *bool  `json:"alive"`
}
