package fastjson_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fastjson"
)

type queue struct {
	Topic  string `json:"topic"`
	Broker string `json:"brokerName"`
	ID     int32  `json:"queueId"`
}

type version struct {
	State   int64 `json:"stateVersion"`
	Time    int64 `json:"timestamp"`
	Counter int64 `json:"counter"`
}

type inner struct {
	Hidden string `json:"name"`
	Extra  *bool  `json:"extra"`
}

type everything struct {
	inner
	Name    string                     `json:"name"`
	Version version                    `json:"dataVersion"`
	Table   map[string]map[int64]int64 `json:"offsetTable"`
	Queues  fastjson.Map[queue, int64] `json:"queues"`
	List    []string                   `json:"list"`
	Codes   []int32                    `json:"codes"`
	Rest    fastjson.Raw               `json:"rest"`
	Rate    float64                    `json:"rate"`
	Yes     bool                       `json:"yes"`
	Pointer *int64                     `json:"pointer"`
	Any     any                        `json:"any"`
	Skipped string                     `json:"-"`
	Empty   map[string]string          `json:"empty,omitempty"`
	Bytes   []byte                     `json:"bytes"`
}

func TestJavaConfigFilesAreWrittenBackByteEqual(t *testing.T) {
	files, err := filepath.Glob("testdata/config/*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 10)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			var raw fastjson.Raw
			require.NoError(t, fastjson.Unmarshal(text, &raw))
			out, err := fastjson.MarshalIndent(raw)
			require.NoError(t, err)
			if strings.HasPrefix(filepath.Base(name), "java-4.9.7") { // its older fastjson breaks lines differently in maps with integer keys
				out, err = fastjson.MarshalDialect(raw)
				require.NoError(t, err)
				text = []byte(strings.NewReplacer("\n", "", "\t", "").Replace(string(text)))
			}
			require.Equal(t, string(text), string(out))

			var tree any
			require.NoError(t, fastjson.Unmarshal(text, &tree))
			standard, err := fastjson.Marshal(tree)
			require.NoError(t, err)
			require.True(t, json.Valid(standard), "%s", standard)
		})
	}
}

func TestTypedConfigIsWrittenAsJavaWritesIt(t *testing.T) {
	text, err := os.ReadFile("testdata/config/java-5.5.0-delayOffset.json")
	require.NoError(t, err)
	var delay struct {
		Version version         `json:"dataVersion"`
		Offsets map[int32]int64 `json:"offsetTable"`
	}
	require.NoError(t, fastjson.Unmarshal(text, &delay))
	require.Len(t, delay.Offsets, 3)
	out, err := fastjson.MarshalIndent(&delay)
	require.NoError(t, err)
	require.Equal(t, string(text), string(out))
}

func TestDialectIsRead(t *testing.T) {
	yes := true
	five := int64(5)
	text := ` {"name":"n","extra":true,"name":"last",
		"offsetTable":{"T@g":{0:3,"1":7,-1:9223372036854775807},"T@g":{2:1}},
		"queues":{{"brokerName":"b","queueId":1,"topic":"t"}:5,{"queueId":"2","topic":"t"}:6},
		"list":["a\u00e9\ud83d\ude00\n","\ud800x"],"codes":["2598919",-7],"rest":{ 1 : [ {} ] },"rate":1,"yes":"true",
		"pointer":5,"any":{1:[1,1.5,"s",null,true],{"a":1}:2},"bytes":"AQI=","unknown":{{"x":[1]}:{3:[]}},{"k":1}:null,7:8,
		"dataVersion":{"counter":1,"timestamp":2},"dataVersion":{"counter":3}} `
	var got everything
	require.NoError(t, fastjson.Unmarshal([]byte(text), &got))
	want := everything{
		inner: inner{Extra: &yes}, Name: "last",
		Version: version{Counter: 3},
		Table:   map[string]map[int64]int64{"T@g": {2: 1}},
		Queues:  fastjson.Map[queue, int64]{{"t", "b", 1}: 5, {"t", "", 2}: 6},
		List:    []string{"aé😀\n", "\ufffdx"}, Codes: []int32{2598919, -7}, Rest: fastjson.Raw(`{ 1 : [ {} ] }`),
		Rate: 1, Yes: true, Pointer: &five, Bytes: []byte{1, 2},
		Any: map[string]any{"1": []any{int64(1), 1.5, "s", nil, true}, `{"a":1}`: int64(2)},
	}
	require.Empty(t, cmp.Diff(want, got, cmp.AllowUnexported(everything{})))
}

func TestPairsAreReadAsObjectKeys(t *testing.T) {
	var got fastjson.Map[queue, int64]
	require.NoError(t, fastjson.Unmarshal([]byte(`[[{"topic":"t","queueId":3},9],[{"topic":"u"},1]]`), &got))
	require.Equal(t, fastjson.Map[queue, int64]{{"t", "", 3}: 9, {"u", "", 0}: 1}, got)
}

func TestFormsOfWriting(t *testing.T) {
	v := everything{
		Name: "q\"\\\x01\u2028é\x7f", Table: map[string]map[int64]int64{"b": {10: 1, 9: 2, -1: 3}, "a": {}},
		Queues: fastjson.Map[queue, int64]{{"t", "b", 2}: 1, {"t", "b", 1}: 2},
		List:   []string{}, Rest: fastjson.Raw(`{"z":1, 3:{{"k":[1]}:null}}`), Rate: 3, Skipped: "x", Bytes: []byte("a"),
	}
	standard := `{"bytes":"YQ==","dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"list":[],` +
		`"name":"q\"\\\u0001\u2028é\u007F","offsetTable":{"a":{},"b":{"-1":3,"9":2,"10":1}},` +
		`"queues":{{"brokerName":"b","queueId":1,"topic":"t"}:2,{"brokerName":"b","queueId":2,"topic":"t"}:1},` +
		`"rate":3.0,"rest":{"z":1,"3":{{"k":[1]}:null}},"yes":false}`
	out, err := fastjson.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, []byte(standard), out, "%s", out)

	out, err = fastjson.MarshalDialect(&v)
	require.NoError(t, err)
	dialect := strings.NewReplacer(`"-1":`, `-1:`, `"9":`, `9:`, `"10":`, `10:`, `"3":`, `3:`).Replace(standard)
	require.Equal(t, dialect, string(out))

	out, err = fastjson.MarshalIndent(map[string]any{"a": map[int32]string{1: "x"}, "b": []string{"y", "z"}, "c": nil, "d": []any{}})
	require.NoError(t, err)
	require.Equal(t, "{\n\t\"a\":{\n\t\t1:\"x\"\n\t},\n\t\"b\":[\n\t\t\"y\",\n\t\t\"z\"\n\t],\n\t\"d\":[]\n}", string(out))
}

func TestNumbersAreWrittenAsJavaDoes(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1.5: "1.5", -2: "-2.0", 1e7: "1.0E7", 1.25e-5: "1.25E-5", 123456: "123456.0",
		math.Inf(1): "null", 1e300: "1.0E300",
	} {
		out, err := fastjson.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
	var back int64
	for _, n := range []int64{math.MaxInt64, math.MinInt64} {
		out, err := fastjson.Marshal(n)
		require.NoError(t, err)
		require.NoError(t, fastjson.Unmarshal(out, &back))
		require.Equal(t, n, back)
	}
}

func TestWhatIsNotTheDialectIsRefused(t *testing.T) {
	deep := strings.Repeat("[", fastjson.DepthMax+2) + strings.Repeat("]", fastjson.DepthMax+2)
	for _, text := range []string{
		``, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{1.5:1}`, `{1e3:1}`, `{-:1}`, `{[1]:2}`, `[1,]`, `[1 2]`, `"`, `"\`, `"\u12`,
		`"\q"`, `nul`, `01`, `1.`, `-`, `1 2`, `{"a":1}}`, `{{"a":1}`, `{"list":5}`, `{"codes":{}}`, `{"codes":["x"]}`, "\x00", "1\x00",
		`{"codes":[2147483648]}`, `{"dataVersion":3}`, `{"pointer":1.5}`, `{"yes":"maybe"}`, `{"queues":[[1]]}`,
		`{"any":` + deep + `}`, `{"rest":` + deep + `}`, `{"unknown":` + deep + `}`, strings.Replace(deep, "[]", `{{}:1}`, 1),
		`{"rest":{1}}`, `'a'`, `{"name":{"a":1}}`, `{"bytes":"*"}`,
	} {
		var v everything
		var syntax *fastjson.SyntaxError
		require.ErrorAs(t, fastjson.Unmarshal([]byte(text), &v), &syntax, "%q", text)
	}
	var syntax *fastjson.SyntaxError
	require.ErrorAs(t, fastjson.Unmarshal([]byte("1"), nil), &syntax)
	require.ErrorAs(t, fastjson.Unmarshal(make([]byte, fastjson.BytesMax+1), new(any)), &syntax)
	_, err := fastjson.Marshal(fastjson.Raw(`{"a":`))
	require.Error(t, err)
	_, err = fastjson.Marshal(make(chan int))
	require.Error(t, err)
}

func TestBytesThatAreNotUTF8BecomeReplacements(t *testing.T) {
	var s string
	require.NoError(t, fastjson.Unmarshal([]byte("\"a\xff\xc3b\""), &s))
	require.Equal(t, "a\ufffd\ufffdb", s)
	out, err := fastjson.Marshal("x\xfe")
	require.NoError(t, err)
	require.Equal(t, "\"x\ufffd\"", string(out))
}

func FuzzUnmarshal(f *testing.F) {
	files, err := filepath.Glob("testdata/config/*.json")
	require.NoError(f, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{{"a":1}:{2:["x\ud83d\ude00",1e3,null]},"b":[[{"topic":"t"},1]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var typed everything
		if fastjson.Unmarshal(text, &typed) == nil {
			first, err := fastjson.MarshalDialect(typed)
			require.NoError(t, err)
			var again everything
			require.NoError(t, fastjson.Unmarshal(first, &again), "%s", first)
			second, err := fastjson.MarshalDialect(again)
			require.NoError(t, err)
			require.Equal(t, string(first), string(second))
		}
		var tree any
		err := fastjson.Unmarshal(text, &tree)
		var reference any
		if json.Unmarshal(text, &reference) == nil && err != nil {
			require.True(t, strings.Contains(err.Error(), "deeper than") || strings.Contains(err.Error(), "not a number"), "standard JSON refused: %v", err)
		}
		var raw fastjson.Raw
		if rawErr := fastjson.Unmarshal(text, &raw); err == nil {
			require.NoError(t, rawErr)
			out, err := fastjson.MarshalIndent(raw)
			require.NoError(t, err)
			var again any
			require.NoError(t, fastjson.Unmarshal(out, &again), "%s", out)
			require.Empty(t, cmp.Diff(withoutObjectKeys(tree), withoutObjectKeys(again)))
		}
	})
}

// withoutObjectKeys leaves out entries whose key is an object: it is kept as its text, and the text changes form.
func withoutObjectKeys(tree any) any {
	switch x := tree.(type) {
	case map[string]any:
		for k, v := range x {
			if strings.HasPrefix(k, "{") {
				delete(x, k)
			} else {
				x[k] = withoutObjectKeys(v)
			}
		}
	case []any:
		for i := range x {
			x[i] = withoutObjectKeys(x[i])
		}
	}
	return tree
}
