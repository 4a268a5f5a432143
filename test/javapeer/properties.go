package javapeer

import (
	"slices"
	"strings"
)

// Properties prints keys as a Java properties file, sorted.
func Properties(keys map[string]string) string {
	lines := make([]string, 0, len(keys))
	for k, v := range keys {
		lines = append(lines, k+"="+v+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
