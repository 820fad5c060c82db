// What the schema says about every message, as tables made from nanopb's field lists: names, kinds,
// maxima, choices. The border (border.h) walks bytes with it. Constant data; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <pb.h>

typedef enum rw_schema_kind {
    RW_SCHEMA_DOUBLE,
    RW_SCHEMA_FIXED32,
    RW_SCHEMA_FIXED64,
    RW_SCHEMA_UINT32,
    RW_SCHEMA_UINT64,
    RW_SCHEMA_BOOL,
    RW_SCHEMA_UENUM,
    RW_SCHEMA_STRING,
    RW_SCHEMA_BYTES,
    RW_SCHEMA_MESSAGE,
} rw_schema_kind;

typedef enum rw_schema_shape {
    RW_SCHEMA_SINGULAR,
    RW_SCHEMA_OPTIONAL,
    RW_SCHEMA_REPEATED,
    RW_SCHEMA_ONEOF,
} rw_schema_shape;

typedef struct rw_schema_message rw_schema_message;

typedef struct rw_schema_field {
    const char* name;
    uint16_t tag;
    uint8_t kind;                 // rw_schema_kind
    uint8_t shape;                // rw_schema_shape
    uint8_t is_view;              // held as rw_wire_array, rw_wire_bytes or rw_wire_list
    uint32_t max;                 // repeated: elements; else string, bytes: bytes
    uint32_t enum_max;            // UENUM: largest value
    uint32_t choice;              // ONEOF: offset of which_... in the struct, plus 1; else 0
    uint32_t offset;              // of the member in the struct, bytes
    uint32_t has_offset;          // OPTIONAL: of has_..., bytes
    const rw_schema_message* sub; // MESSAGE: its schema
} rw_schema_field;

struct rw_schema_message {
    const char* name;
    const rw_schema_field* fields; // ascending tags
    uint32_t field_count;
    const pb_msgdesc_t* descriptor;
    size_t struct_bytes;
};

enum {
    RW_SCHEMA_FIELD_LIMIT = 128,  // no message has more fields
    RW_SCHEMA_ELEMENT_TEXT = 255, // longest string of a repeated string, bytes
};

// The schema of a message by its nanopb name: RW_SCHEMA(rw_pb_Scene).
#define RW_SCHEMA(type) (&rw_schema_of_##type)

#define RW_SCHEMA_MESSAGES(X)                                                                      \
    X(Status) X(Scene) X(RigidSolver) X(RodSolver) X(Solver) X(Solver_Xpbd) X(Solver_Dae)          \
    X(Solver_Scr) X(Solver_Contact) X(Pose) X(BlobField) X(Body) X(Shape) X(Shape_Sphere)          \
    X(Shape_Capsule) X(Shape_Box) X(Shape_Cylinder) X(Shape_Plane) X(Shape_Hull) X(Shape_Mesh)     \
    X(Motor) X(Joint) X(Coupling) X(Section) X(Stiffness) X(Rod) X(Rod_Straight) X(Rod_Helix)      \
    X(Rod_Polyline) X(Rod_Graph) X(Attachment) X(Anchor) X(Force) X(Force_SpringDamper)            \
    X(Force_Load) X(Force_Drag) X(Input) X(Input_PiecewiseLinear) X(Input_Cubic) X(Input_Sine)     \
    X(Hello) X(HelloResult) X(HelloResult_Limits) X(Ping) X(PingResult) X(Cancel) X(BeginUpload)   \
    X(BeginUploadResult) X(UploadChunk) X(UploadChunkResult) X(ReleaseBlob) X(LargeResult)         \
    X(DownloadChunk) X(DownloadChunkResult) X(Role) X(SessionState) X(Fault) X(CreateSession)      \
    X(AttachSession) X(DetachSession) X(CloseSession) X(ListSessions) X(ListSessionsResult)        \
    X(SessionInfo) X(Ref) X(ObjectRef) X(LoadScene) X(LoadSceneResult) X(GetScene)                 \
    X(GetSceneResult) X(CreateBody) X(CreateJoint) X(CreateCoupling) X(CreateRod)                  \
    X(CreateAttachment) X(CreateForce) X(CreateInput) X(CreateResult) X(Remove) X(RemoveResult)    \
    X(SetPose) X(SetVelocity) X(SetJointState) X(SetMotor) X(SetAttachmentTarget) X(SetGravity)    \
    X(SetWind) X(SetTimeStep) X(SetSolver) X(SetBodyProperties) X(SetJointProperties)              \
    X(SetRodProperties) X(SetForce) X(ApplyWrench) X(Step) X(StepResult) X(Run) X(Pause)           \
    X(PauseResult) X(LayoutEntry) X(Observe) X(ObserveResult) X(Actuate) X(ActuateResult)          \
    X(Release) X(Advance) X(AdvanceResult) X(BatchAdvance) X(BatchAdvanceResult)                   \
    X(BatchAdvanceResult_EntryError) X(Snapshot) X(SnapshotResult) X(Restore) X(DropSnapshot)      \
    X(Fork) X(ForkResult) X(Rollout) X(RolloutResult) X(Stats) X(StatsResult)                      \
    X(StatsResult_Counter) X(Query) X(Query_Signals) X(Query_Energy) X(Query_Contacts)             \
    X(Query_RayCast) X(Query_ClosestPoints) X(Query_Jacobian) X(Query_MassMatrix)                  \
    X(Query_InverseDynamics) X(Query_ForwardDynamics) X(Query_Hash) X(QueryResult)                 \
    X(QueryResult_Signals) X(QueryResult_Energy) X(QueryResult_Contacts) X(QueryResult_RayCast)    \
    X(QueryResult_ClosestPoints) X(QueryResult_Jacobian) X(QueryResult_MassMatrix)                 \
    X(QueryResult_Dynamics) X(QueryResult_Hash) X(Stream) X(Subscribe) X(SubscribeResult)          \
    X(Unsubscribe) X(UnsubscribeResult) X(Layout) X(Layout_Entry) X(StateFrame) X(Request)         \
    X(Batch) X(BatchResult) X(Response) X(Event) X(Event_ProtocolError) X(Event_Draining)          \
    X(Event_SessionChanged) X(Event_SubscriptionEnded)

#define RW_SCHEMA_DECLARE(name) extern const rw_schema_message rw_schema_of_rw_pb_##name;
RW_SCHEMA_MESSAGES(RW_SCHEMA_DECLARE)
#undef RW_SCHEMA_DECLARE

// The field with this tag, or NULL.
const rw_schema_field* rw_schema_find(const rw_schema_message* message, uint64_t tag);
