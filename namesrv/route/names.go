package route

import (
	"strconv"
	"strings"
	"unicode"
)

// Bounds of what a broker may say.
const (
	nameBytesMax = 255
	filtersMax   = 16
)

// ValidName reports whether a cluster, broker, zone or topic name may be in a route. It is wider than the rule for new
// topics, because brokers make topics of their own and their cluster's name: what is printable and has neither blanks nor
// what JSON would have to escape.
func ValidName(name string) bool {
	if name == "" || len(name) > nameBytesMax {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return r == '"' || r == '\\' || r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsPrint(r)
	}) < 0
}

// ValidAddr reports whether an address is a host and a port. A host of IPv6 may stand without brackets, as Java writes it.
func ValidAddr(addr string) bool {
	if !ValidName(addr) {
		return false
	}
	i := strings.LastIndexByte(addr, ':')
	if i <= 0 || strings.ContainsAny(addr[:i], ",;/") {
		return false
	}
	port, err := strconv.ParseUint(addr[i+1:], 10, 16)
	return err == nil && port > 0
}
