package message_test

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/message"
)

func readable(p message.Properties) string {
	return strings.NewReplacer("\x01", "=", "\x02", ";").Replace(string(p))
}

func encoded(text string) message.Properties {
	return message.Properties(strings.NewReplacer("=", "\x01", ";", "\x02").Replace(text))
}

func TestLookupReadsAsJavaDoes(t *testing.T) {
	for _, c := range []struct{ in, key, want string }{
		{"a=1;b=2;", "b", "2"},
		{"a=1;b=2", "b", "2"},       // no trailing separator
		{"a=1;a=2;", "a", "2"},      // the last one counts
		{"a=1;a=;", "a", "1"},       // an empty value is no pair
		{"=1;a=2;", "", ""},         // an empty key neither
		{"a;b=2;", "a", ""},         // nor a piece without a value
		{"a=1=2;b=3;", "a", "1=2"},  // only the first separator splits
		{";;a=1;;", "a", "1"},       //
		{"ab=1;b=2;", "b", "2"},     // no prefix or suffix match
		{"", "a", ""},               //
		{"clé=été;", "clé", "été"},  //
		{"a=1;b=2;", "missing", ""}, //
	} {
		value, ok := encoded(c.in).Lookup(c.key)
		require.Equal(t, c.want, readable(value), "%q of %q", c.key, c.in)
		require.Equal(t, c.want != "", ok)
		require.Equal(t, ok, encoded(c.in).Has(c.key))
	}
}

func TestPropertiesChange(t *testing.T) {
	set := func(k, v string) func(message.Properties) message.Properties {
		return func(p message.Properties) message.Properties { return p.Set(k, v) }
	}
	without := func(keys ...string) func(message.Properties) message.Properties {
		return func(p message.Properties) message.Properties { return p.Without(keys...) }
	}
	join := func(more string) func(message.Properties) message.Properties {
		return func(p message.Properties) message.Properties { return p.Join(encoded(more)) }
	}
	for _, c := range []struct {
		in     string
		change func(message.Properties) message.Properties
		want   string
	}{
		{"", set("a", "1"), "a=1;"},
		{"a=1;", set("b", "2"), "a=1;b=2;"},
		{"a=1", set("b", "2"), "a=1;b=2;"},
		{"a=1;b=2;c=3;", set("b", "longer"), "a=1;b=longer;c=3;"},
		{"a=1;b=longer;c=3;", set("b", "2"), "a=1;b=2;c=3;"},
		{"a=1;b=2", set("b", "x"), "a=1;b=x"},
		{"a=1;b=2;a=3;c=4;", set("a", "9"), "a=9;b=2;c=4;"},
		{"a=1;b=2;c=3;", without("a", "c"), "b=2;"},
		{"a=1;b=2;a=3", without("a"), "b=2;"},
		{"a=1;b=2", without("b"), "a=1;"},
		{"a=1;b=2;", without("x"), "a=1;b=2;"},
		{"a=1;", without("a"), ""},
		{"a=1", join("b=2;"), "a=1;b=2;"},
		{"a=1;", join("b=2"), "a=1;b=2"},
		{"", join("b=2"), "b=2"},
		{"a=1", join(""), "a=1"},
	} {
		require.Equal(t, c.want, readable(c.change(encoded(c.in))), c.in)
		roomy := append(make(message.Properties, 0, 100), encoded(c.in)...)
		require.Equal(t, c.want, readable(c.change(roomy)), c.in)
	}
}

func TestPropertiesMapRoundTrip(t *testing.T) {
	pairs := map[string]string{"b": "2", "a": "1", "clé": "été"}
	p := message.MakeProperties(pairs)
	require.Equal(t, "a=1;b=2;clé=été;", readable(p))
	require.Equal(t, pairs, message.ParseProperties(p))
	var seen []string
	p.All(func(k, v []byte) bool { seen = append(seen, string(k)+string(v)); return len(seen) < 2 })
	require.Equal(t, []string{"a1", "b2"}, seen)
}

func TestOffsetID(t *testing.T) {
	host := netip.MustParseAddrPort("192.168.1.2:10911")
	require.Equal(t, "C0A8010200002A9F0000000000000400", message.OffsetID(host, 1024))
	for _, host := range []string{"192.168.1.2:10911", "[2001:db8::1]:65535", "0.0.0.0:0"} {
		for _, offset := range []int64{0, 1 << 33, 1<<63 - 1} {
			want := netip.MustParseAddrPort(host)
			id := message.OffsetID(want, offset)
			for _, text := range []string{id, strings.ToLower(id)} {
				gotHost, gotOffset, err := message.ParseOffsetID(text)
				require.NoError(t, err)
				require.Equal(t, want, gotHost)
				require.Equal(t, offset, gotOffset)
			}
		}
	}
	for _, bad := range []string{
		"", "C0A8", strings.Repeat("G", 32), strings.Repeat("F", 32), "+" + strings.Repeat("0", 31),
		"C0A801020001000000000000000004000", "C0A80102000100000000000000000400", "C0A8010200002A9F8000000000000000",
	} {
		_, _, err := message.ParseOffsetID(bad)
		require.ErrorIs(t, err, message.ErrBadID, bad)
	}
}

func TestJavaHash(t *testing.T) {
	for text, want := range map[string]int32{
		"": 0, "TagA": 2598919, "TagB-Zz9": -728090220, "polygenelubricants": -2147483648,
	} {
		require.Equal(t, want, message.JavaHash(text))
		require.Equal(t, want, message.JavaHash([]byte(text)))
	}
	for _, text := range []string{"标签", "é", "a😀b", "\U0010FFFF"} {
		var want int32
		for _, unit := range utf16.Encode([]rune(text)) {
			want = 31*want + int32(unit)
		}
		require.Equal(t, want, message.JavaHash([]byte(text)), text)
	}
}

func TestUniqueKeysDiffer(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				key := message.NewUniqueKey()
				mu.Lock()
				seen[key] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 8000)
	for key := range seen {
		require.Regexp(t, "^[0-9A-F]{32}$", key)
	}
}

func ExampleOffsetID() {
	fmt.Println(message.OffsetID(netip.MustParseAddrPort("192.168.1.2:10911"), 1024))
	// Output: C0A8010200002A9F0000000000000400
}
