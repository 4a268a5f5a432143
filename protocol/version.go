package protocol

import "fmt"

// Versions whose senders are treated differently (ordinals of RocketMQ's MQVersion.Version).
const (
	Version3_4_9 int32 = 121 // a maxReconsumeTimes in the header counts
	Version4_9_3 int32 = 399 // signatures leave out _UNIQUE_KEY_QUERY up to here
	Version4_9_4 int32 = 401 // reads routes as standard JSON
	Version5_0_0 int32 = 413 // REGISTER_BROKER carries queue mappings
	Version5_3_1 int32 = 475 // understands GO_AWAY after here

	versionHigher int32 = 612
)

var versionsBefore3_0_1 = [...]string{
	"V3_0_0_SNAPSHOT", "V3_0_0_ALPHA1", "V3_0_0_BETA1", "V3_0_0_BETA2", "V3_0_0_BETA3", "V3_0_0_BETA4", "V3_0_0_BETA5",
	"V3_0_0_BETA6_SNAPSHOT", "V3_0_0_BETA6", "V3_0_0_BETA7_SNAPSHOT", "V3_0_0_BETA7", "V3_0_0_BETA8_SNAPSHOT", "V3_0_0_BETA8",
	"V3_0_0_BETA9_SNAPSHOT", "V3_0_0_BETA9", "V3_0_0_FINAL",
}

// VersionName returns the name of an MQVersion ordinal. Each release owns two ordinals, its snapshot and itself; the
// releases before 4.0.0 have gaps, hence the three ranges.
func VersionName(ordinal int32) string {
	if ordinal < 0 || ordinal >= versionHigher {
		return "HIGHER_VERSION"
	}
	if int(ordinal) < len(versionsBefore3_0_1) {
		return versionsBefore3_0_1[ordinal]
	}
	suffix := "_SNAPSHOT"
	if ordinal%2 == 1 {
		suffix = ""
	}
	n := ordinal / 2
	switch {
	case n < 23: // 3.0.1 to 3.0.15
		return fmt.Sprintf("V3_0_%d%s", n-7, suffix)
	case n < 43: // 3.1.0 to 3.2.9
		return fmt.Sprintf("V3_%d_%d%s", 1+(n-23)/10, (n-23)%10, suffix)
	case n < 106: // 3.3.1 to 3.9.9, without patch 0
		return fmt.Sprintf("V3_%d_%d%s", 3+(n-43)/9, 1+(n-43)%9, suffix)
	default: // from 4.0.0, ten minors and ten patches each
		return fmt.Sprintf("V%d_%d_%d%s", 4+(n-106)/100, (n-106)/10%10, (n-106)%10, suffix)
	}
}
