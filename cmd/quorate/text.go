package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// joinPairs writes a map as `k=v,k=v`, sorted.
func joinPairs(m map[string]string) string {
	var all []string
	for _, k := range sortedKeys(m) {
		all = append(all, k+"="+m[k])
	}
	return strings.Join(all, ",")
}
