// Package offset holds consumer progress, its persistence (config/consumerOffset.json) and the requests about offsets.
package offset

// Table is safe for concurrent use; queries and commits of known queues do not allocate.
type Table struct{}

// Query returns the committed offset, or −1.
func (t *Table) Query(group, topic string, queueID int32) int64 { panic("unbuilt") }

// Commit stores an offset. CommitPull stores the pull position (in memory only).
func (t *Table) Commit(group, topic string, queueID int32, offset int64)     { panic("unbuilt") }
func (t *Table) CommitPull(group, topic string, queueID int32, offset int64) { panic("unbuilt") }

// TakeReset returns and forgets a server-side reset target (PROTOCOL §3.6), or −1, false.
func (t *Table) TakeReset(group, topic string, queueID int32) (int64, bool) { panic("unbuilt") }

// Groups lists groups with progress on a topic; Topics the topics of a group.
func (t *Table) Groups(topic string) []string { panic("unbuilt") }
func (t *Table) Topics(group string) []string { panic("unbuilt") }

// RemoveTopic and RemoveGroup forget progress.
func (t *Table) RemoveTopic(topic string) { panic("unbuilt") }
func (t *Table) RemoveGroup(group string) { panic("unbuilt") }

// Persist writes config/consumerOffset.json if something changed.
func (t *Table) Persist() error { panic("unbuilt") }
