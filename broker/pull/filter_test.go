package pull

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/message"
)

// The parser against the rule in words: names between "||", trimmed, blank ones left out; blank or "*" is everything;
// nothing but bars is an error.
func FuzzSubscriptionExpression(f *testing.F) {
	for _, s := range []string{"", "*", "a", "a||b", " a || b ", "||", "|", "a|b", "* || a", "|||", "a||||b"} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, expression, tag string) {
		var got tags
		all, ok := got.parse([]byte(expression))
		trimmed := strings.TrimSpace(expression)
		if trimmed == "" || trimmed == "*" {
			require.True(t, all && ok)
			return
		}
		require.False(t, all)
		wanted := map[string]bool{}
		for name := range strings.SplitSeq(trimmed, "||") {
			if name = strings.TrimSpace(name); name != "" {
				wanted[name] = true
			}
		}
		require.Equal(t, len(wanted) > 0, ok)
		if wanted[tag] {
			require.True(t, got.MatchTagsCode(int64(message.JavaHash(tag))), "whoever is wanted is never filtered out")
		}
		for name := range wanted {
			require.True(t, got.MatchTagsCode(int64(message.JavaHash(name))))
		}
	})
}
