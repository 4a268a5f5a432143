package ha

import "slices"

// SyncStateSet is a non-empty set of broker ids, the master included. It is immutable; the zero value is invalid.
type SyncStateSet struct{ ids []BrokerID } // sorted, distinct

// NewSyncStateSet collapses duplicates, then refuses an empty set and negative ids.
func NewSyncStateSet(ids ...BrokerID) (SyncStateSet, error) {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) == 0 {
		return SyncStateSet{}, ErrEmptySyncStateSet
	}
	if _, err := NewBrokerID(int64(sorted[0])); err != nil {
		return SyncStateSet{}, err
	}
	return SyncStateSet{ids: sorted}, nil
}

// Size counts the members.
func (s SyncStateSet) Size() int { return len(s.ids) }

// Has reports membership.
func (s SyncStateSet) Has(id BrokerID) bool {
	_, found := slices.BinarySearch(s.ids, id)
	return found
}

// At returns the i-th member in ascending order.
func (s SyncStateSet) At(i int) BrokerID { return s.ids[i] }

// IDs returns a copy, ascending.
func (s SyncStateSet) IDs() []BrokerID { return slices.Clone(s.ids) }

// Equal compares members.
func (s SyncStateSet) Equal(o SyncStateSet) bool { return slices.Equal(s.ids, o.ids) }

// Union is used for decisions while a change is outstanding: additions count at once, removals only when committed (I10).
func (s SyncStateSet) Union(o SyncStateSet) SyncStateSet {
	all := slices.Concat(s.ids, o.ids)
	slices.Sort(all)
	return SyncStateSet{ids: slices.Compact(all)}
}
