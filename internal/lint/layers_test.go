// Package lint tests the shape of the repository: who may import whom, and what stays where.
package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/quorate/quorate/"
	root   = "../.."
)

// mayImport is the dependency rule of ARCHITECTURE.md. A package may always import its own subtree, internal/* and what
// is listed here; nothing else of this module.
var mayImport = map[string][]string{
	// rules and primitives
	"ha":       {},
	"internal": {},
	// formats
	"message":  {},
	"filter":   {},
	"protocol": {"message"},
	// engine
	"store": {"message", "ha"},
	// capabilities
	"remoting":    {"protocol"},
	"replication": {"store", "message", "ha"},
	"auth":        {"remoting", "protocol"},
	"admin":       {"remoting", "protocol", "message"},
	"client":      {"remoting", "protocol", "message"},
	"bench":       {"client", "remoting", "protocol", "message"},
	// servers: they meet on the wire, never in an import
	"namesrv":    {"auth", "remoting", "protocol"},
	"controller": {"auth", "remoting", "protocol", "ha"},
	"broker":     {"replication", "auth", "remoting", "store", "protocol", "filter", "message", "ha"},
	"proxy":      {"auth", "remoting", "protocol", "message"},
	"console":    {"admin", "auth"},
	// wiring
	"embed": {"*"},
	"cmd":   {"*"},
	"test":  {"*"},
}

// wiringOfInternal are packages below internal that look at the whole tree.
var wiringOfInternal = []string{"internal/lint/", "internal/gen/"}

// pure packages decide; they never touch the outside world.
var pure = []string{"ha", "controller/replicas", "namesrv/route", "filter"}

var pureMayImport = []string{
	"bytes", "cmp", "errors", "fmt", "iter", "maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
}

var clockCalls = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick"}

// binaryFiles are the only file names that may turn values into bytes by hand.
var binaryFiles = []string{"format", "frame", "header", "record"}

// linesMax is where a file holds more than one idea.
const linesMax = 600

type source struct {
	rel  string
	file *ast.File
	fset *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "data" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		all = append(all, source{filepath.ToSlash(rel), file, fset})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d files found: is the root right?", len(all))
	}
	return all
}

func TestLayersPurityAndFormats(t *testing.T) {
	for _, s := range sources(t) {
		checkLayer(t, s)
		if strings.HasSuffix(s.rel, "_test.go") {
			continue
		}
		checkPure(t, s)
		checkBinary(t, s)
	}
}

func TestFilesHoldOneIdea(t *testing.T) {
	for _, s := range sources(t) {
		if lines := s.fset.File(s.file.Pos()).LineCount(); lines > linesMax && !strings.HasSuffix(s.rel, "_test.go") {
			t.Errorf("%s has %d lines, more than %d: it holds more than one idea", s.rel, lines, linesMax)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.rel, "_test.go") {
			continue
		}
		dir := filepath.Dir(s.rel)
		documented[dir] = documented[dir] || s.file.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func checkLayer(t *testing.T, s source) {
	t.Helper()
	top, _, _ := strings.Cut(s.rel, "/")
	allowed, known := mayImport[top]
	if !known {
		t.Errorf("%s: top-level directory %q is not in mayImport; place it in ARCHITECTURE.md first", s.rel, top)
	}
	if slices.ContainsFunc(wiringOfInternal, func(p string) bool { return strings.HasPrefix(s.rel, p) }) {
		return
	}
	for _, path := range imports(s.file) {
		target, ours := strings.CutPrefix(path, module)
		if !ours {
			continue
		}
		dep, _, _ := strings.Cut(target, "/")
		if dep == "message" && strings.HasSuffix(s.rel, "_test.go") {
			continue // tests of whoever carries records make some
		}
		if dep != top && dep != "internal" && !slices.Contains(allowed, dep) && !slices.Contains(allowed, "*") {
			t.Errorf("%s imports %s: %s may import only %v", s.rel, target, top, allowed)
		}
	}
}

func checkPure(t *testing.T, s source) {
	t.Helper()
	if !slices.ContainsFunc(pure, func(p string) bool { return strings.HasPrefix(s.rel, p+"/") }) {
		return
	}
	for _, path := range imports(s.file) {
		if !strings.HasPrefix(path, module) && !slices.Contains(pureMayImport, path) {
			t.Errorf("%s is pure and may not import %s", s.rel, path)
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clockCalls, sel.Sel.Name) {
				t.Errorf("%s is pure: take the time as an argument instead of calling time.%s", s.rel, sel.Sel.Name)
			}
		}
		if _, ok := n.(*ast.GoStmt); ok {
			t.Errorf("%s is pure and may not start goroutines", s.rel)
		}
		return true
	})
}

func checkBinary(t *testing.T, s source) {
	t.Helper()
	base := filepath.Base(s.rel)
	if !strings.HasPrefix(s.rel, "test/") && slices.Contains(imports(s.file), "encoding/binary") &&
		!slices.ContainsFunc(binaryFiles, func(p string) bool { return strings.HasPrefix(base, p) }) {
		t.Errorf("%s imports encoding/binary: put the layout in a file named %v*.go", s.rel, binaryFiles)
	}
}

func imports(file *ast.File) []string {
	var paths []string
	for _, spec := range file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}
