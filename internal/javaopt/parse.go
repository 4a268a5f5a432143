// Package javaopt parses command lines as Apache Commons CLI does, so that the words people gave to mqadmin keep their
// meaning: `-t x`, `-tx`, `--topic x`, `--topic=x`, `-topic x`, unique prefixes of long names, and short names of two
// letters.
package javaopt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Option is one option of a command.
type Option struct {
	Short, Long string
	Arg         bool   // takes a value
	Required    bool   // must be given
	Group       string // exactly one option of a required group must be given; "" is no group
	Text        string // what it is for
}

// Options are the options of one command.
type Options []Option

// Values are the given values by long name; an option without a value has "true".
type Values map[string]string

// Has reports whether an option was given.
func (v Values) Has(long string) bool { _, ok := v[long]; return ok }

// Get returns the value of long, or fallback when it was not given.
func (v Values) Get(long, fallback string) string {
	if text, ok := v[long]; ok {
		return strings.TrimSpace(text)
	}
	return fallback
}

var negativeNumber = regexp.MustCompile(`^-\d+(\.\d+)?$`)

// Parse reads words. The rest are the words that belong to no option.
func (o Options) Parse(words []string) (values Values, rest []string, err error) {
	values = Values{}
	take := func(opt *Option, inline string, hasInline bool, i int) (int, error) {
		if !opt.Arg {
			if hasInline {
				return i, fmt.Errorf("option -%s takes no value", opt.Short)
			}
			values[opt.Long] = "true"
			return i, nil
		}
		if hasInline {
			values[opt.Long] = inline
			return i, nil
		}
		if i+1 >= len(words) || o.isOption(words[i+1]) && !negativeNumber.MatchString(words[i+1]) {
			return i, fmt.Errorf("option -%s (--%s) needs a value", opt.Short, opt.Long)
		}
		values[opt.Long] = unquote(words[i+1])
		return i + 1, nil
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			rest = append(rest, words[i+1:]...)
			break
		}
		if word == "-" || !strings.HasPrefix(word, "-") || negativeNumber.MatchString(word) && o.short(word[1:2]) == nil {
			rest = append(rest, word)
			continue
		}
		if i, err = o.option(word, i, take); err != nil {
			return nil, nil, err
		}
	}
	return values, rest, o.complete(values)
}

type taker func(opt *Option, inline string, hasInline bool, i int) (int, error)

// option handles one word that starts with a hyphen and returns the index of the last word it used.
func (o Options) option(word string, i int, take taker) (int, error) {
	bare := strings.TrimLeft(word, "-")
	name, inline, hasInline := strings.Cut(bare, "=")
	if !strings.HasPrefix(word, "--") {
		if opt := o.short(name); opt != nil {
			return take(opt, inline, hasInline, i)
		}
	}
	switch matches := o.long(name); {
	case len(matches) == 1:
		return take(matches[0], inline, hasInline, i)
	case len(matches) > 1:
		return i, fmt.Errorf("option %s is ambiguous: %s", word, names(matches))
	case strings.HasPrefix(word, "--"):
		return i, fmt.Errorf("unknown option %s", word)
	}
	// Concatenated short options; the first that takes a value takes the rest of the word.
	for at := range bare {
		opt := o.short(bare[at : at+1])
		if opt == nil {
			return i, fmt.Errorf("unknown option %s", word)
		}
		if opt.Arg {
			tail := bare[at+1:]
			return take(opt, tail, tail != "", i)
		}
		if _, err := take(opt, "", false, i); err != nil {
			return i, err
		}
	}
	return i, nil
}

func (o Options) isOption(word string) bool {
	if !strings.HasPrefix(word, "-") || len(word) < 2 {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if name == "" {
		return false
	}
	if strings.HasPrefix(word, "--") {
		return len(o.long(name)) > 0
	}
	return o.short(name) != nil || len(o.long(name)) > 0 || o.short(name[:1]) != nil
}

func (o Options) short(name string) *Option {
	for i := range o {
		if o[i].Short == name && name != "" {
			return &o[i]
		}
	}
	return nil
}

// long returns the option of exactly that long name, or all whose long name starts so.
func (o Options) long(name string) []*Option {
	var matches []*Option
	for i := range o {
		switch {
		case name == "":
		case o[i].Long == name:
			return []*Option{&o[i]}
		case strings.HasPrefix(o[i].Long, name):
			matches = append(matches, &o[i])
		}
	}
	return matches
}

// complete checks what must be given.
func (o Options) complete(values Values) error {
	groups := map[string]int{}
	var missing []string
	for _, opt := range o {
		if opt.Group != "" {
			if values.Has(opt.Long) {
				groups[opt.Group]++
			} else {
				groups[opt.Group] += 0
			}
			continue
		}
		if opt.Required && !values.Has(opt.Long) {
			missing = append(missing, "-"+opt.Short+" (--"+opt.Long+")")
		}
	}
	for group, given := range groups {
		var members []string
		for _, opt := range o {
			if opt.Group == group {
				members = append(members, "-"+opt.Short+" (--"+opt.Long+")")
			}
		}
		switch {
		case given > 1:
			return fmt.Errorf("only one of %s may be given", strings.Join(members, ", "))
		case given == 0:
			missing = append(missing, "one of "+strings.Join(members, ", "))
		}
	}
	if missing != nil {
		slices.Sort(missing)
		return fmt.Errorf("missing: %s", strings.Join(missing, "; "))
	}
	return nil
}

// Help describes the options, one a line.
func (o Options) Help() string {
	var b strings.Builder
	for _, opt := range o {
		flag := "-" + opt.Short + ", --" + opt.Long
		if opt.Arg {
			flag += " <arg>"
		}
		fmt.Fprintf(&b, "  %-40s %s\n", flag, opt.Text)
	}
	return b.String()
}

func names(opts []*Option) string {
	var all []string
	for _, opt := range opts {
		all = append(all, "--"+opt.Long)
	}
	return strings.Join(all, ", ")
}

// unquote drops one pair of double quotes around a value, as Commons CLI does.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' && !strings.Contains(s[1:len(s)-1], `"`) {
		return s[1 : len(s)-1]
	}
	return s
}
