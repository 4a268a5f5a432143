package protocol

import "time"

// DataVersion versions a table that brokers and NameServers exchange (RocketMQ DataVersion). Two are equal when all three
// parts are. StateVersion is the master epoch, 0 without a Controller; Timestamp is in ms.
type DataVersion struct {
	Counter      int64 `json:"counter"`
	StateVersion int64 `json:"stateVersion"`
	Timestamp    int64 `json:"timestamp"`
}

// Next is the version after one more change.
func (v DataVersion) Next(now time.Time) DataVersion {
	return DataVersion{Counter: v.Counter + 1, StateVersion: v.StateVersion, Timestamp: now.UnixMilli()}
}
