package conf

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Edit returns a properties text with new values: lines of those keys are replaced where they stand, keys it does not have
// are added at the end, everything else stays as it is. In a text too strange for that (keys written with escapes), all are
// added at the end, where the last one counts.
func Edit(text []byte, changed map[string]string) []byte {
	if edited := inPlace(text, changed); keeps(text, edited, changed) {
		return edited
	}
	out := append(slices.Clone(text), '\n', '\n')
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		out = append(out, key+"="+escape(changed[key])+"\n"...)
	}
	return out
}

// keeps reports whether an edited text says what it did besides the changed keys.
func keeps(before, after []byte, changed map[string]string) bool {
	old, errOld := Parse("before", before)
	edited, errEdited := Parse("after", after)
	if errOld != nil || errEdited != nil {
		return false
	}
	for key, value := range changed {
		if edited[key].Text != strings.TrimSpace(value) {
			return false
		}
	}
	for key, v := range old {
		if _, isChanged := changed[key]; !isChanged && edited[key].Text != v.Text {
			return false
		}
	}
	return true
}

func inPlace(text []byte, changed map[string]string) []byte {
	left := maps.Clone(changed)
	var out bytes.Buffer
	continued := false // by a backslash at the end of the line before
	drop := false      // the line before was replaced, and this one continues it
	for line := range bytes.Lines(text) {
		bare := strings.TrimRight(string(line), "\r\n")
		continues := odd(bare)
		if continued {
			if !drop {
				out.Write(line)
			}
			continued = continues
			continue
		}
		key := keyOf(bare)
		value, replace := changed[key]
		drop = replace
		continued = continues
		if !replace {
			out.Write(line)
			continue
		}
		if _, first := left[key]; first {
			out.WriteString(key + "=" + escape(value) + "\n")
			delete(left, key)
		}
	}
	if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteByte('\n')
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		out.WriteString(key + "=" + escape(left[key]) + "\n")
	}
	return out.Bytes()
}

// odd reports whether a line ends in an odd number of backslashes: it goes on in the next one.
func odd(line string) bool {
	if t := strings.TrimLeft(line, " \t\f"); strings.HasPrefix(t, "#") || strings.HasPrefix(t, "!") {
		return false
	}
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// keyOf is the key of a line, "" of a comment or a blank one. Keys with escapes are none of ours.
func keyOf(line string) string {
	line = strings.TrimLeft(line, " \t\f")
	if line == "" || line[0] == '#' || line[0] == '!' {
		return ""
	}
	if i := strings.IndexAny(line, "=: \t\f"); i >= 0 {
		line = line[:i]
	}
	return line
}

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// escape writes a value so that Parse reads it back.
func escape(value string) string { return escapes.Replace(strings.TrimSpace(value)) }
