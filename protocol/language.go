package protocol

// Languages (RocketMQ LanguageCode). Never renumber.
const (
	Java Language = iota
	CPP
	DotNet
	Python
	Delphi
	Erlang
	Ruby
	Other
	HTTP
	Go
	PHP
	OMS
	Rust
	NodeJS
)

var languageNames = [...]string{
	"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
}

// String returns the name that JSON headers carry; an unknown code is "OTHER".
func (l Language) String() string {
	if int(l) < len(languageNames) {
		return languageNames[l]
	}
	return languageNames[Other]
}

// LanguageOf returns the language of a JSON header's name without allocating; an unknown name is Other and false.
func LanguageOf(name []byte) (Language, bool) {
	for i, n := range languageNames {
		if string(name) == n {
			return Language(i), true
		}
	}
	return Other, false
}

// MarshalText writes the name, as bodies carry it.
func (l Language) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads the name; an unknown one becomes Other, so that a newer client is not refused for its language.
func (l *Language) UnmarshalText(name []byte) error {
	*l, _ = LanguageOf(name)
	return nil
}
