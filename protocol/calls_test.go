package protocol_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// untypedFields are ext fields that the product sends beside its header classes; handlers read them from the command.
var untypedFields = map[string]bool{
	"MSG_REGION": true, "TRACE_ON": true, "IS_SUPPORT_HEART_BEAT_V2": true, "IS_SUB_CHANGE": true,
}

// TestEveryCapturedCallHasItsTypes decodes what Java brokers and clients sent into typed headers and bodies and encodes
// them again: the same header fields and the same JSON values must come out.
func TestEveryCapturedCallHasItsTypes(t *testing.T) {
	types := map[protocol.RequestCode]protocol.RequestType{}
	for _, x := range protocol.RequestTypes() {
		types[x.Request.Code()] = x
	}
	files, err := filepath.Glob("testdata/calls/*.bin")
	require.NoError(t, err)
	require.Len(t, files, 4)
	met := map[protocol.RequestCode]bool{}
	for _, name := range files {
		stream, err := os.ReadFile(name)
		require.NoError(t, err)
		older := strings.Contains(name, "4.9.7")
		var asked protocol.RequestType
		for _, frame := range split(t, stream) {
			c, err := decode(frame)
			require.NoError(t, err)
			if c.Response() {
				if protocol.ResponseCode(c.Code) == protocol.Success {
					checkHeader(t, asked.Request.Code(), c, asked.Response)
					checkBody(t, asked.Request.Code(), c, asked.ResponseBody, older)
				}
				continue
			}
			var known bool
			asked, known = types[protocol.RequestCode(c.Code)]
			require.True(t, known, "no type for %v", protocol.RequestCode(c.Code))
			met[asked.Request.Code()] = true
			checkHeader(t, asked.Request.Code(), c, asked.Request)
			checkBody(t, asked.Request.Code(), c, asked.Body, older)
		}
	}
	require.Len(t, met, 34, "request codes in the captures")
}

func fresh(prototype any) any { return reflect.New(reflect.TypeOf(prototype).Elem()).Interface() }

func checkHeader(t *testing.T, code protocol.RequestCode, c *protocol.Command, prototype any) {
	t.Helper()
	want := map[string]string{}
	for _, f := range c.Ext {
		if !untypedFields[string(f.Key)] && len(f.Value) > 0 { // an empty text is left out
			want[string(f.Key)] = string(f.Value)
		}
	}
	if prototype == nil {
		require.Empty(t, want, "%v", code)
		return
	}
	header := fresh(prototype)
	require.NoError(t, protocol.DecodeHeader(c.Ext, header), "%v", code)
	got := map[string]string{}
	for _, f := range protocol.AppendHeader(nil, header) {
		_, twice := got[string(f.Key)]
		require.False(t, twice, "%v: %s", code, f.Key)
		got[string(f.Key)] = string(f.Value)
	}
	require.Empty(t, cmp.Diff(want, got), "%v", code)
}

func checkBody(t *testing.T, code protocol.RequestCode, c *protocol.Command, prototype any, older bool) {
	t.Helper()
	if len(c.Body) == 0 {
		return
	}
	if prototype == nil {
		require.Contains(t, bodiesThatAreNotJSON, code, "%s", c.Body)
		return
	}
	body := fresh(prototype)
	require.NoError(t, fastjson.Unmarshal(c.Body, body), "%v", code)
	out, err := fastjson.MarshalDialect(body)
	require.NoError(t, err)
	var want, got any
	require.NoError(t, fastjson.Unmarshal(c.Body, &want))
	require.NoError(t, fastjson.Unmarshal(out, &got))
	if older {
		got = withoutNewZeroes(want, got)
	}
	require.Empty(t, cmp.Diff(want, got), "%v\n%s", code, c.Body)
}

// withoutNewZeroes leaves out of got the zero fields that want lacks: RocketMQ 5 added fields to bodies of RocketMQ 4.
func withoutNewZeroes(want, got any) any {
	if list, ok := got.([]any); ok {
		wanted, _ := want.([]any)
		for i := range min(len(list), len(wanted)) {
			list[i] = withoutNewZeroes(wanted[i], list[i])
		}
	}
	g, isMap := got.(map[string]any)
	w, both := want.(map[string]any)
	if !isMap || !both {
		return got
	}
	for k, v := range g {
		if _, had := w[k]; !had && (v == int64(0) || v == false || v == "") {
			delete(g, k)
		} else {
			g[k] = withoutNewZeroes(w[k], v)
		}
	}
	return g
}

var bodiesThatAreNotJSON = []protocol.RequestCode{
	protocol.CodeSendMessage, protocol.CodeSendMessageV2, protocol.CodeSendBatchMessage, protocol.CodePullMessage,
	protocol.CodeCheckTransactionState,
}

func TestCatalogIsInOrderAndNamesKnownCodesOnce(t *testing.T) {
	var codes []protocol.RequestCode
	for _, x := range protocol.RequestTypes() {
		codes = append(codes, x.Request.Code())
		require.True(t, x.Request.Code().Known())
		require.NotPanics(t, func() { // every tag is one the codec knows
			require.NotNil(t, x.Request)
			_ = protocol.AppendHeader(nil, x.Request)
			if x.Response != nil {
				_ = protocol.AppendHeader(nil, x.Response)
			}
		})
	}
	require.True(t, slices.IsSorted(codes))
	require.Len(t, slices.Compact(slices.Clone(codes)), len(codes))
	for code := range protocol.Unserved {
		require.True(t, code.Known())
	}
}

func TestCodesAndVersionsHaveTheProductsNames(t *testing.T) {
	require.Equal(t, "GET_ROUTEINFO_BY_TOPIC", protocol.CodeGetRouteInfoByTopic.String())
	require.Equal(t, "REQUEST_9999", protocol.RequestCode(9999).String())
	require.Equal(t, "TOPIC_NOT_EXIST", protocol.TopicNotExist.String())
	require.Equal(t, "RESPONSE_-1", protocol.ResponseCode(-1).String())
	for ordinal, name := range map[int32]string{
		0: "V3_0_0_SNAPSHOT", 15: "V3_0_0_FINAL", 16: "V3_0_1_SNAPSHOT", 43: "V3_0_14", 45: "V3_0_15", 46: "V3_1_0_SNAPSHOT",
		85: "V3_2_9", 86: "V3_3_1_SNAPSHOT", 121: "V3_4_9", 137: "V3_5_8", 211: "V3_9_9", 213: "V4_0_0", 317: "V4_5_2",
		401: "V4_9_4", 407: "V4_9_7", 413: "V5_0_0", 479: "V5_3_3", 513: "V5_5_0", 611: "V5_9_9", 612: "HIGHER_VERSION", -1: "HIGHER_VERSION",
	} {
		require.Equal(t, name, protocol.VersionName(ordinal))
	}
	for i := range protocol.Language(14) {
		back, ok := protocol.LanguageOf([]byte(i.String()))
		require.True(t, ok)
		require.Equal(t, i, back)
	}
}
