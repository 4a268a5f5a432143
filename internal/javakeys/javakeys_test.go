package javakeys

import (
	"strings"
	"testing"
)

func TestEachKeyHasOneReason(t *testing.T) {
	for _, tables := range [][][]group{{brokerGroups, sharedGroups}, {namesrvGroups, sharedGroups}} {
		seen := map[string]string{}
		for _, table := range tables {
			for _, g := range table {
				for key := range strings.FieldsSeq(g.keys) {
					if earlier, twice := seen[key]; twice {
						t.Errorf("%s has two reasons: %q and %q", key, earlier, g.reason)
					}
					seen[key] = g.reason
				}
			}
		}
	}
}
