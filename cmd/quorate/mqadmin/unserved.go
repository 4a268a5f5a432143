package mqadmin

// Reasons why a command of RocketMQ 5.5.0 is not here.
const (
	awaitsController = "Controller mode is not built yet"
	awaitsReplicas   = "replication is not built yet"
	awaitsAuth       = "authentication and authorization are not built yet"
	awaitsPop        = "pop consumption is not built yet"
	noStaticTopics   = "static topics are not supported"
	noContainer      = "a broker runs alone in its process; there is no container"
	noRocksDB        = "there is no RocksDB here"
	noColdData       = "reads of old data never block other requests, so there is no cold-data control"
	notHere          = "read the tables with topicList, consumerProgress and getBrokerConfig"
)

// unserved are the commands without an implementation, with the reason.
var unserved = map[string]string{
	"addBroker": noContainer, "removeBroker": noContainer,
	"getControllerMetaData": awaitsController, "getControllerConfig": awaitsController, "updateControllerConfig": awaitsController,
	"electMaster": awaitsController, "cleanBrokerMetadata": awaitsController, "getSyncStateSet": awaitsController,
	"getBrokerEpoch": awaitsController,
	"haStatus":       awaitsReplicas, "resetMasterFlushOffset": awaitsReplicas,
	"createUser": awaitsAuth, "updateUser": awaitsAuth, "deleteUser": awaitsAuth, "getUser": awaitsAuth, "listUser": awaitsAuth,
	"copyUser": awaitsAuth, "createAcl": awaitsAuth, "updateAcl": awaitsAuth, "deleteAcl": awaitsAuth, "getAcl": awaitsAuth,
	"listAcl": awaitsAuth, "copyAcl": awaitsAuth,
	"setConsumeMode": awaitsPop, "exportPopRecord": awaitsPop,
	"updateStaticTopic": noStaticTopics, "remappingStaticTopic": noStaticTopics,
	"checkRocksdbCqWriteProgress": noRocksDB, "exportMetadataInRocksDB": noRocksDB, "rocksDBConfigToJson": noRocksDB,
	"getColdDataFlowCtrInfo": noColdData, "updateColdDataFlowCtrGroupConfig": noColdData,
	"removeColdDataFlowCtrGroupConfig": noColdData, "setCommitLogReadAheadMode": "the log is read by position, the kernel reads ahead",
	"dumpCompactionLog":  "compaction topics are not supported",
	"queryMsgTraceById":  "message trace is not built yet",
	"startMonitoring":    "watch `quorate group lag` instead",
	"clusterRT":          "use `quorate bench produce`",
	"exportMetadata":     notHere,
	"exportConfigs":      notHere,
	"exportMetrics":      notHere,
	"updateSubGroupList": "use updateSubGroup for each group",
}
